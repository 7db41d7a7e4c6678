import { once } from "node:events";
import { connect } from "node:net";

/**
 * One keep-alive connection with one request in flight: writes bytes that were made before, looks for the status
 * and the length of the answer and for nothing else. It costs a few microseconds a request, where an HTTP client
 * would cost as much as the server that is measured.
 */
export interface HttpConnection {
  /** One at a time: not again before `onAnswer`. */
  send(request: Buffer, onAnswer: (status: number) => void): void;
  close(): void;
}

/** Connects. A connection that the server closes, or that fails, is reported to `onLost`, once. */
export async function openConnection(
  port: number,
  onLost: (error: Error) => void,
): Promise<HttpConnection> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await once(socket, "connect");
  let answered: ((status: number) => void) | null = null;
  let received: Buffer = empty;
  let isClosing = false;
  const lost = (why: string) => {
    if (!isClosing) onLost(new Error(`a connection was lost: ${why}`));
    isClosing = true;
  };
  socket.on("error", (error) => lost(error.message));
  socket.on("close", () => lost("the server closed it"));
  socket.on("data", (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const answer = parseAnswer(received);
    if (answer === null) return;
    received = empty;
    const onAnswer = answered;
    answered = null;
    onAnswer?.(answer);
  });
  return {
    send(request, onAnswer) {
      answered = onAnswer;
      socket.write(request);
    },
    close() {
      isClosing = true;
      socket.destroy();
    },
  };
}

const empty = Buffer.alloc(0);

/** The status of an answer that is all there, else null. */
function parseAnswer(bytes: Buffer): number | null {
  const text = bytes.toString("latin1");
  const bodyAt = text.indexOf("\r\n\r\n") + 4;
  if (bodyAt < 4) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  if (length === undefined) throw new Error(`an answer without a length:\n${text}`);
  return text.length < bodyAt + Number(length) ? null : Number(text.slice(9, 12));
}
