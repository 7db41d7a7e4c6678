import { once } from "node:events";
import { STATUS_CODES } from "node:http";
import type { Server } from "node:http";
import { isIPv6 } from "node:net";
import type { Socket } from "node:net";
import { errorCode } from "../platform/postgres-errors.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { rawRefusal, refusals } from "./answers.ts";
import type { Refusal } from "./answers.ts";
import type { ReceiverCounters, RejectionReason } from "./counters.ts";

/** The code with which the server ends a request that did not arrive in time. */
export const requestTimeoutCode = "ERR_HTTP_REQUEST_TIMEOUT";

/** Listens, or throws `ConfigurationError` that says why it cannot. */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new ConfigurationError(explain(errorCode(cause), host, port), { cause });
  }
}

function explain(code: string | undefined, host: string, port: number): string {
  switch (code) {
    case "EADDRINUSE":
      return `PORT: another program listens on ${host}:${port}. Stop it, or set another port (0 picks a free one).`;
    case "EACCES":
      return `PORT: this user may not listen on port ${port}. Set one above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `HOST: ${host} is no address of this machine. Set one that is, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `HOST and PORT: cannot listen on ${host}:${port} (${code ?? "unknown reason"}).`;
  }
}

/** How to reach from this machine what listens on `host`. */
export function localAddress(host: string): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return isIPv6(reachable) ? `[${reachable}]` : reachable;
}

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
