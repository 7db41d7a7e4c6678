import { STATUS_CODES } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { rawRefusal, refusals, sendRefusal } from "./answers.ts";
import type { Refusal } from "./answers.ts";
import type { ReceiverCounters, RejectionReason } from "./counters.ts";

/** The code with which the server ends a request that did not arrive in time. */
export const requestTimeoutCode = "ERR_HTTP_REQUEST_TIMEOUT";

const lastAnswer = Symbol("the answer to the last request of a connection");

type Connection = Duplex & { [lastAnswer]?: ServerResponse };

/** Notes that a request began on its connection. To be called for each, before anything else. */
export function noteRequest(res: ServerResponse): void {
  (res.req.socket as Connection)[lastAnswer] = res;
}

/**
 * Whether a connection only holds its place: its sender does not read what it was answered, or was answered before its
 * body had arrived and still owes the rest. Pure, but for the time it is called at.
 */
export function isSpent(connection: Connection): boolean {
  const last = connection[lastAnswer];
  return connection.writableLength > 0 || (hasAnswered(last) && !last.req.complete);
}

/** Whether every request of a connection has its answer. Further bytes may have come, but no further request. */
export function isAnswered(connection: Connection): boolean {
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
export function refuseConnection(
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
export function refuseTunnel(counters: ReceiverCounters, socket: Duplex): void {
  counters.rejected.method_not_allowed += 1;
  // Nobody else listens any more.
  socket.on("error", () => {});
  const refusal = { ...refusals.method, headers: { Allow: "POST" } };
  afterAnswers(socket, () => {
    socket.end(rawRefusal(refusal, STATUS_CODES[refusal.status] ?? ""), () => socket.destroy());
  });
}

/** Answers a request that arrived whole and that nobody may serve, as HTTP has it, and closes its connection. */
export function refuseRequest(
  counters: ReceiverCounters,
  res: ServerResponse,
  refusal: typeof refusals.malformed | typeof refusals.expectation,
): void {
  counters.rejected.malformed_request += 1;
  sendRefusal(res, refusal, { Connection: "close" });
}

/** Half-closing is how a sender says that this was its last request; it still waits for the answers. */
export function answerHalfClosed(server: Server): void {
  // Node reads this property, and neither documents nor types it. test/receiver/connection-limits.test.ts sees it work.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
}

interface ConnectionFault {
  reason: RejectionReason;
  refusal: Refusal;
}

const malformed: ConnectionFault = { reason: "malformed_request", refusal: refusals.malformed };

const connectionFaults: Readonly<Record<string, ConnectionFault>> = {
  [requestTimeoutCode]: { reason: "slow", refusal: refusals.slow },
  HPE_HEADER_OVERFLOW: { reason: "malformed_request", refusal: refusals.headersTooLong },
  ERR_HTTP_CHUNK_EXTENSIONS_OVERFLOW: { reason: "malformed_request", refusal: refusals.tooLarge },
};
