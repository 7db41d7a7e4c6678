import {
  type IncomingMessage,
  STATUS_CODES,
  type Server,
  type ServerResponse,
  createServer,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RateLimitedWarnings } from "../platform/rate-limited-warnings.ts";
import { type ApiError, rawRefusal, refusals, sendRefusal } from "./answers.ts";
import type { ReceiverCounters, RejectionReason } from "./counters.ts";
import type { ReceiverLimits } from "./limits.ts";

interface HttpServerDeps {
  counters: ReceiverCounters;
  warnSeldom: RateLimitedWarnings;
  /** Answers what is a whole and proper request. */
  handle(req: IncomingMessage, res: ServerResponse): void;
  /** See `AdmissionOptions`. */
  slowest(): Socket | null;
}

interface HttpServerOptions {
  limits: ReceiverLimits;
  maxConnections: number;
}

/**
 * A server that holds nobody's connection for ever, and that counts and answers itself whatever is no request for
 * `handle`. It does not listen yet.
 */
export function createHttpServer(
  { counters, warnSeldom, handle, slowest }: HttpServerDeps,
  { limits, maxConnections }: HttpServerOptions,
): Server {
  const handleProper = (req: IncomingMessage, res: ServerResponse): void => {
    noteRequest(res);
    admission.noteRequest(req.socket);
    const hasHost = req.headers.host !== undefined || req.httpVersion !== "1.1";
    if (!hasHost || !isTarget(req.url ?? "")) {
      refuseRequest(counters, res, refusals.malformed);
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
      // Looked at in `handleProper`: Node's own answer has another form, and nobody would count it.
      requireHostHeader: false,
    },
    handleProper,
  );
  // A sender that asks before it sends the body is answered by the same code, which invites it or refuses.
  server.on("checkContinue", handleProper);
  server.on("checkExpectation", (_req, res) => {
    noteRequest(res);
    refuseRequest(counters, res, refusals.expectation);
  });
  server.on("connect", (_req, socket) => refuseTunnel(counters, socket));
  // Who neither sends nor reads what was answered holds no connection for ever.
  server.timeout = limits.requestMs + limits.answerMs;
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseConnection(counters, error, socket);
  });
  server.maxRequestsPerSocket = limits.requestsPerConnection;
  answerHalfClosed(server);
  const admission = limitConnections(server, {
    max: maxConnections,
    maxSilentPerAddress: limits.silentPerAddress,
    slowest,
    onRefused() {
      counters.connectionsRefused += 1;
      warnSeldom("a connection was closed unanswered: there are too many", { max: maxConnections });
    },
  });
  return server;
}

/** A path, or in the absolute form an address that is one: Koa would fail on another, and answer 500. */
const isTarget = (target: string): boolean =>
  target.startsWith("/") || URL.canParse(target, "http://x");

export interface AdmissionOptions {
  /** Connections at a time. */
  max: number;
  /** Of those that have not sent a request yet, from one address. */
  maxSilentPerAddress: number;
  /** The connection that has sent the headers of its request for the longest time, and not all of its body. */
  slowest(): Socket | null;
  /** A connection was closed unanswered to make room, or found none. */
  onRefused(): void;
}

/** Who may hold a connection. */
export interface Admission {
  /** A connection began a request: it is silent no longer. Costs a look-up. */
  noteRequest(socket: Socket): void;
}

/** How often idle connections are closed at the most, when there are too many. */
const closeIdleEveryMs = 100;

/**
 * Caps the connections of a server. Past the cap the least useful one makes room for a new one: the oldest that has
 * sent nothing, else one whose body is not all there, else one that only holds its place (`isSpent`), else all that
 * idle between two requests, else one in the middle of its next request's headers. A connection is safe only while a
 * request that came whole waits for its answer, so whoever opens connections and leaves them keeps out nobody else.
 * Where nobody can make room, the new one is closed.
 *
 * Only silent connections are limited by address: behind a proxy all senders have one, and a proxy connects to send.
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

  /** Whether there were any. To look for them costs a look at every connection. */
  function closeIdle(): boolean {
    if (!mayCloseIdle) return false;
    mayCloseIdle = false;
    setTimeout(() => (mayCloseIdle = true), closeIdleEveryMs).unref();
    server.closeIdleConnections();
    return [...open].some(({ destroyed }) => destroyed);
  }

  /** The oldest of its kind. */
  function firstOpen(isOne: (socket: Socket) => boolean): Socket | null {
    for (const socket of open) if (!socket.destroyed && isOne(socket)) return socket;
    return null;
  }

  const makeRoom = (): boolean =>
    evict(silent.keys().next().value) ||
    evict(slowest()) ||
    evict(firstOpen(isSpent)) ||
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

/** An IPv6 address counts with its /64, of which one sender has them all. Pure. */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return "";
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}

/** The code with which the server ends a request that did not arrive in time. */
export const requestTimeoutCode = "ERR_HTTP_REQUEST_TIMEOUT";

const lastAnswer = Symbol("the answer to the last request of a connection");

type Connection = Duplex & { [lastAnswer]?: ServerResponse };

/** Notes that a request began on its connection. To be called for each, before anything else. */
function noteRequest(res: ServerResponse): void {
  (res.req.socket as Connection)[lastAnswer] = res;
}

/**
 * Whether a connection only holds its place: its sender does not read what it was answered, or was answered before its
 * body had arrived and still owes the rest. Pure, but for the time it is called at.
 */
function isSpent(connection: Connection): boolean {
  const last = connection[lastAnswer];
  return connection.writableLength > 0 || (hasAnswered(last) && !last.req.complete);
}

/** Whether every request of a connection has its answer. Further bytes may have come, but no further request. */
function isAnswered(connection: Connection): boolean {
  return hasAnswered(connection[lastAnswer]);
}

const hasAnswered = (last: ServerResponse | undefined): last is ServerResponse =>
  last !== undefined && last.writableFinished;

/**
 * Calls back once every request that came whole over a connection has its answer, in their order. A connection may
 * bring several requests before the first is answered, and what is written past them would take the first one's place.
 */
function afterAnswers(connection: Connection, then: () => void): void {
  const last = connection[lastAnswer];
  if (last === undefined || last.writableFinished || last.destroyed) then();
  else if (last.req.complete) last.once("close", then);
  // It never will be complete. It gets the connection once all before it are answered.
  else if (last.socket === null) last.once("socket", then);
  else then();
}

/** Answers what came over a connection and is no request, after the requests before it, and closes the connection. */
function refuseConnection(
  counters: ReceiverCounters,
  error: NodeJS.ErrnoException,
  socket: Socket,
): void {
  // Every piece that still comes is the same error again.
  if (failed.has(socket)) return;
  failed.add(socket);
  const { code = "" } = error;
  // Who went away hears nothing any more, and was counted where the request ended, if there was one.
  const isGone = code === "HPE_INVALID_EOF_STATE";
  const fault = connectionFaults[code] ?? (code.startsWith("HPE_") && !isGone ? malformed : null);
  if (fault === null && !isGone) {
    socket.destroy(error);
    return;
  }
  if (fault !== null) counters.rejected[fault.reason] += 1;
  afterAnswers(socket, () => {
    if (fault !== null && socket.writable) {
      socket.write(rawRefusal(fault.refusal, STATUS_CODES[fault.refusal.status] ?? ""));
    }
    socket.destroy(error);
  });
}

const failed = new WeakSet<Socket>();

/** Answers a request to pass bytes on to another address, which leaves HTTP behind, and closes the connection. */
function refuseTunnel(counters: ReceiverCounters, socket: Duplex): void {
  counters.rejected.method_not_allowed += 1;
  // Nobody else listens any more.
  socket.on("error", () => {});
  const refusal = { ...refusals.method, headers: { Allow: "POST" } };
  afterAnswers(socket, () => {
    socket.end(rawRefusal(refusal, STATUS_CODES[refusal.status] ?? ""), () => socket.destroy());
  });
}

/** Answers a request that arrived whole and that nobody may serve, as HTTP has it, and closes its connection. */
function refuseRequest(
  counters: ReceiverCounters,
  res: ServerResponse,
  refusal: typeof refusals.malformed | typeof refusals.expectation,
): void {
  counters.rejected.malformed_request += 1;
  sendRefusal(res, refusal, { Connection: "close" });
}

/** Half-closing is how a sender says that this was its last request; it still waits for the answers. */
function answerHalfClosed(server: Server): void {
  // Node reads this property, and neither documents nor types it. test/receiver/connection-limits.test.ts sees it work.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
}

interface ConnectionFault {
  reason: RejectionReason;
  refusal: ApiError;
}

const malformed: ConnectionFault = { reason: "malformed_request", refusal: refusals.malformed };

const connectionFaults: Readonly<Record<string, ConnectionFault>> = {
  [requestTimeoutCode]: { reason: "slow", refusal: refusals.slow },
  HPE_HEADER_OVERFLOW: { reason: "malformed_request", refusal: refusals.headersTooLong },
  ERR_HTTP_CHUNK_EXTENSIONS_OVERFLOW: { reason: "malformed_request", refusal: refusals.tooLarge },
};
