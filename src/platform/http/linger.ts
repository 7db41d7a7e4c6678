import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** Limits in time and bytes for reading a connection after its last answer. */
export interface LingerLimits {
  ms: number;
  bytes: number;
}

/** The time of a whole request, and more bytes than a proxy passes by default. */
export const defaultLinger: LingerLimits = { ms: 5_000, bytes: 64 * 1024 * 1024 };

const lookEveryMs = 50;
const lastRequest = Symbol("the last request of a connection");

type Connection = Socket & { [lastRequest]?: IncomingMessage };

/**
 * Lets a sender read the last answer of its connection (`Connection: close`, HTTP/1.0) although it still sends its
 * body. Node closes such a connection as soon as the answer is written; later bytes are answered with a reset, and a
 * reset discards the answer. Here the end is sent, and the rest of the body is read and dropped, up to the limits. Call
 * it when the server has its listeners.
 */
export function lingerAfterAnswers(server: Server, limits: LingerLimits = defaultLinger): void {
  for (const event of ["request", "checkContinue", "checkExpectation"]) {
    // Without a listener Node answers by itself, and then calls those of "request".
    if (event !== "request" && server.listenerCount(event) === 0) continue;
    server.prependListener(event, (req: IncomingMessage) => {
      (req.socket as Connection)[lastRequest] = req;
    });
  }
  server.on("connection", (socket: Connection) => {
    const endAtOnce = socket.destroySoon.bind(socket);
    // What Node calls after the last answer.
    socket.destroySoon = () => {
      const req = socket[lastRequest];
      if (req === undefined || req.complete || socket.destroyed) endAtOnce();
      else linger(socket, limits, () => req.complete);
    };
  });
}

/**
 * Ends the sending side, and destroys the connection once `isRead`, the other side has ended, or a limit is reached.
 * The caller must read what arrives.
 */
export function linger(
  socket: Socket,
  { ms, bytes }: LingerLimits,
  isRead: () => boolean = () => false,
  error?: Error,
): void {
  const before = socket.bytesRead;
  const untilMs = performance.now() + ms;
  socket.end();
  const looking = setInterval(() => {
    const isOver = performance.now() >= untilMs || socket.bytesRead - before > bytes;
    if (isOver || isRead() || socket.readableEnded) socket.destroy(error);
  }, lookEveryMs);
  socket.once("close", () => clearInterval(looking));
}
