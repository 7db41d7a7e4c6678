import { type IncomingMessage, STATUS_CODES, type Server, type ServerResponse, createServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { defaultLinger, linger, lingerAfterAnswers } from "../../platform/http/linger.ts";
import type { RateLimitedWarnings } from "../../platform/rate-limited-warnings.ts";
import { type ApiError, rawApiError, apiErrors, sendApiError } from "./answers.ts";
import type { ReceiverCounters, RejectionReason } from "./counters.ts";
import type { ReceiverLimits } from "./limits.ts";

interface HttpServerDeps {
  counters: ReceiverCounters;
  warnRateLimited: RateLimitedWarnings;
  /** Answers a request whose headers are complete and well formed. */
  handle(req: IncomingMessage, res: ServerResponse): void;
  /** See `AdmissionOptions`. */
  slowest(): Socket | null;
}

interface HttpServerOptions {
  limits: ReceiverLimits;
  maxConnections: number;
}

/**
 * Creates a server that closes idle connections in time. It answers and counts everything that is not a request for
 * `handle`. It does not listen yet.
 */
export function createHttpServer(
  { counters, warnRateLimited, handle, slowest }: HttpServerDeps,
  { limits, maxConnections }: HttpServerOptions,
): Server {
  const handleProper = (req: IncomingMessage, res: ServerResponse): void => {
    noteRequest(res);
    admission.noteRequest(req.socket);
    const hasHost = req.headers.host !== undefined || req.httpVersion !== "1.1";
    if (!hasHost || !isTarget(req.url ?? "")) {
      refuseRequest(counters, res, apiErrors.malformed);
      return;
    }
    handle(req, res);
  };
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.tickMs,
      // Checked in `handleProper`: Node's own answer has another form and would not be counted.
      requireHostHeader: false,
    },
    handleProper,
  );
  // The same code answers `Expect: 100-continue`: it asks for the body or refuses.
  server.on("checkContinue", handleProper);
  server.on("checkExpectation", (_req, res) => {
    noteRequest(res);
    refuseRequest(counters, res, apiErrors.expectation);
  });
  server.on("connect", (_req, socket) => refuseTunnel(counters, socket));
  // Closes a connection whose sender neither sends nor reads its answers.
  server.timeout = limits.requestMs + limits.answerMs;
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseConnection(counters, error, socket);
  });
  server.maxRequestsPerSocket = limits.requestsPerConnection;
  answerHalfClosed(server);
  lingerAfterAnswers(server, { ...defaultLinger, ms: limits.requestMs });
  const admission = limitConnections(server, {
    max: maxConnections,
    maxSilentPerAddress: limits.silentPerAddress,
    slowest,
    onRefused() {
      counters.connectionsRefused += 1;
      warnRateLimited("a connection was closed unanswered: too many were open", {
        max: maxConnections,
      });
    },
  });
  return server;
}

/** A path, or an absolute URL. Koa would throw on anything else and answer 500. */
const isTarget = (target: string): boolean => target.startsWith("/") || URL.canParse(target, "http://x");

export interface AdmissionOptions {
  /** The most open connections. */
  max: number;
  /** Connections from one address that have not sent a request yet. */
  maxSilentPerAddress: number;
  /** The connection whose body has been incomplete for the longest time. */
  slowest(): Socket | null;
  /** Called for each connection that is closed unanswered: an open one for a new one, or the new one itself. */
  onRefused(): void;
}

/** Decides which connections stay open. */
export interface Admission {
  /** Notes that a connection has begun a request and is no longer silent. Costs one lookup. */
  noteRequest(socket: Socket): void;
}

/** The least time between two closings of all idle connections, each of which visits every connection. */
const closeIdleEveryMs = 100;

/**
 * Caps the connections of a server. Past the cap, the least useful connection is closed for a new one. The order is:
 * the oldest that has sent nothing; one whose body is incomplete; one that only occupies its place (`isUnproductive`);
 * all that are idle between two requests; one in the middle of its next request's headers. Only a connection whose
 * complete request waits for its answer is safe. So a sender that opens connections without using them keeps no other
 * out. When no connection can be closed, the new one is.
 *
 * Only silent connections are limited by address: behind a proxy all senders share one address, and a proxy connects in
 * order to send.
 */
function limitConnections(server: Server, options: AdmissionOptions): Admission {
  const { max, maxSilentPerAddress, slowest, onRefused } = options;
  /** Oldest first. */
  const silent = new Map<Socket, string>();
  const silentByAddress = new Map<string, Set<Socket>>();
  const open = new Set<Socket>();
  let mayCloseIdle = true;

  function forgetSilent(socket: Socket): void {
    const address = silent.get(socket);
    if (address === undefined) return;
    silent.delete(socket);
    const ofAddress = silentByAddress.get(address);
    ofAddress?.delete(socket);
    if (ofAddress?.size === 0) silentByAddress.delete(address);
  }

  function evict(socket: Socket | null | undefined): boolean {
    if (socket === null || socket === undefined) return false;
    onRefused();
    forgetSilent(socket);
    socket.destroy();
    return true;
  }

  /** Returns whether any were closed. Visits every connection. */
  function closeIdle(): boolean {
    if (!mayCloseIdle) return false;
    mayCloseIdle = false;
    setTimeout(() => (mayCloseIdle = true), closeIdleEveryMs).unref();
    server.closeIdleConnections();
    return [...open].some(({ destroyed }) => destroyed);
  }

  /** The oldest open connection that matches. */
  function firstOpen(isOne: (socket: Socket) => boolean): Socket | null {
    for (const socket of open) if (!socket.destroyed && isOne(socket)) return socket;
    return null;
  }

  const makeRoom = (): boolean =>
    evict(silent.keys().next().value) ||
    evict(slowest()) ||
    evict(firstOpen(isUnproductive)) ||
    closeIdle() ||
    evict(firstOpen(isAnswered));

  server.on("connection", (socket) => {
    const address = addressGroup(socket.remoteAddress);
    const ofAddress = silentByAddress.get(address);
    if (ofAddress !== undefined && ofAddress.size >= maxSilentPerAddress) {
      evict(ofAddress.values().next().value);
    }
    if (open.size >= max && !makeRoom()) {
      onRefused();
      socket.destroy();
      return;
    }
    open.add(socket);
    silent.set(socket, address);
    silentByAddress.set(address, (silentByAddress.get(address) ?? new Set()).add(socket));
    socket.once("close", () => {
      open.delete(socket);
      forgetSilent(socket);
    });
  });
  return { noteRequest: forgetSilent };
}

/** Groups an IPv6 address by its /64, since one sender usually owns all of it. */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return "";
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}

/** Error code of a request that did not arrive in time. */
export const requestTimeoutCode = "ERR_HTTP_REQUEST_TIMEOUT";

const lastAnswer = Symbol("the answer to the last request of a connection");

type Connection = Duplex & { [lastAnswer]?: ServerResponse };

/** Notes that a request began on its connection. Must be called first for every request. */
function noteRequest(res: ServerResponse): void {
  (res.req.socket as Connection)[lastAnswer] = res;
}

/**
 * Whether a connection only occupies its place: its sender does not read the answer, or was answered before its body
 * had fully arrived. Depends only on the connection's state at the time of the call.
 */
function isUnproductive(connection: Connection): boolean {
  const last = connection[lastAnswer];
  return connection.writableLength > 0 || (hasAnswered(last) && !last.req.complete);
}

/** Whether every request of a connection has its answer. Further bytes may have arrived, but no further request. */
function isAnswered(connection: Connection): boolean {
  return hasAnswered(connection[lastAnswer]);
}

const hasAnswered = (last: ServerResponse | undefined): last is ServerResponse =>
  last !== undefined && last.writableFinished;

/**
 * Calls back once every complete request on a connection is answered, in order. A connection may pipeline several
 * requests; bytes written too early would be taken for the answer to the first.
 */
function afterAnswers(connection: Connection, then: () => void): void {
  const last = connection[lastAnswer];
  if (last === undefined || last.writableFinished || last.destroyed) then();
  else if (last.req.complete) last.once("close", then);
  // This request will never be complete. It gets the socket once all requests before it are answered.
  else if (last.socket === null) last.once("socket", then);
  else then();
}

/** Answers invalid input on a connection, after the requests before it, and closes the connection. */
function refuseConnection(counters: ReceiverCounters, error: NodeJS.ErrnoException, socket: Socket): void {
  // Every further chunk raises the same error.
  if (failed.has(socket)) return;
  failed.add(socket);
  const { code = "" } = error;
  // A sender that disconnected gets no answer. It was counted where its request ended, if there was one.
  const isGone = code === "HPE_INVALID_EOF_STATE";
  const fault = connectionFaults[code] ?? (code.startsWith("HPE_") && !isGone ? malformed : null);
  if (fault === null && !isGone) {
    socket.destroy(error);
    return;
  }
  // Its request has its answer, and the rest of the body took too long.
  if (isUnproductive(socket)) {
    socket.destroy(error);
    return;
  }
  if (fault !== null) counters.rejected[fault.reason] += 1;
  afterAnswers(socket, () => {
    if (fault !== null && socket.writable) {
      socket.write(rawApiError(fault.refusal, STATUS_CODES[fault.refusal.status] ?? ""));
      // A slow sender has little on its way, and must not come to the end of its request after all.
      if (fault !== slow) return linger(socket, malformedLinger, undefined, error);
    }
    socket.destroy(error);
  });
}

const failed = new WeakSet<Socket>();

/**
 * Refuses a CONNECT request, which would turn the connection into a tunnel, and closes the connection.
 */
function refuseTunnel(counters: ReceiverCounters, socket: Duplex): void {
  counters.rejected.method_not_allowed += 1;
  // No other error listener is left on this socket.
  socket.on("error", () => {});
  const refusal = { ...apiErrors.method, headers: { Allow: "POST" } };
  afterAnswers(socket, () => {
    socket.end(rawApiError(refusal, STATUS_CODES[refusal.status] ?? ""), () => socket.destroy());
  });
}

/** Refuses a complete request that must not be served, with the status that HTTP defines, and closes its connection. */
function refuseRequest(
  counters: ReceiverCounters,
  res: ServerResponse,
  refusal: typeof apiErrors.malformed | typeof apiErrors.expectation,
): void {
  counters.rejected.malformed_request += 1;
  sendApiError(res, refusal, { Connection: "close" });
}

/** Keeps half-closed connections open: a sender half-closes after its last request and still waits for the answers. */
function answerHalfClosed(server: Server): void {
  // Node reads this property, and neither documents nor types it. test/receiver/connection-limits.test.ts tests it.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
}

interface ConnectionFault {
  reason: RejectionReason;
  refusal: ApiError;
}

const malformed: ConnectionFault = { reason: "malformed_request", refusal: apiErrors.malformed };

const slow: ConnectionFault = { reason: "slow", refusal: apiErrors.slow };

/** Input that is no HTTP request gets less time. */
const malformedLinger = { ms: 1_000, bytes: 1024 * 1024 };

const connectionFaults: Readonly<Record<string, ConnectionFault>> = {
  [requestTimeoutCode]: slow,
  HPE_HEADER_OVERFLOW: { reason: "malformed_request", refusal: apiErrors.headersTooLong },
  ERR_HTTP_CHUNK_EXTENSIONS_OVERFLOW: { reason: "malformed_request", refusal: apiErrors.tooLarge },
};
