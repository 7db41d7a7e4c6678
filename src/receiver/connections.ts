import { STATUS_CODES } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { rawRefusal, refusals, sendRefusal } from "./answers.ts";
import type { Refusal } from "./answers.ts";
import type { ReceiverCounters, RejectionReason } from "./counters.ts";

/** The code with which the server ends a request that did not arrive in time. */
export const requestTimeoutCode = "ERR_HTTP_REQUEST_TIMEOUT";

/** How often idle connections are looked for, when there are too many. */
const makeRoomEveryMs = 100;

/**
 * Past the cap a new connection is closed unanswered, at no cost; those that idle between two requests are closed
 * too, so that the next one finds room.
 */
export function capConnections(server: Server, max: number, onRefused: () => void): void {
  let isMakingRoom = false;
  server.maxConnections = max;
  server.on("drop", () => {
    onRefused();
    if (isMakingRoom) return;
    isMakingRoom = true;
    server.closeIdleConnections();
    setTimeout(() => (isMakingRoom = false), makeRoomEveryMs).unref();
  });
}

/** Answers what came over a connection and is no request, and closes it. */
export function refuseConnection(
  counters: ReceiverCounters,
  error: NodeJS.ErrnoException,
  socket: Socket,
): void {
  const { code = "" } = error;
  // Who went away hears nothing any more, and was counted where the request ended, if there was one.
  const isGone = code === "HPE_INVALID_EOF_STATE";
  const fault = connectionFaults[code] ?? (code.startsWith("HPE_") && !isGone ? malformed : null);
  if (fault === null) {
    socket.destroy(error);
    return;
  }
  const { reason, refusal } = fault;
  counters.rejected[reason] += 1;
  if (socket.writable) socket.write(rawRefusal(refusal, STATUS_CODES[refusal.status] ?? ""));
  socket.destroy(error);
}

/** Answers a request to pass bytes on to another address, which leaves HTTP behind, and closes the connection. */
export function refuseTunnel(counters: ReceiverCounters, socket: Duplex): void {
  counters.rejected.method_not_allowed += 1;
  // Nobody else listens any more.
  socket.on("error", () => {});
  const refusal = { ...refusals.method, headers: { Allow: "POST" } };
  socket.end(rawRefusal(refusal, STATUS_CODES[refusal.status] ?? ""), () => socket.destroy());
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
