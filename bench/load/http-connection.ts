import { once } from "node:events";
import { type Socket, connect } from "node:net";

/**
 * One keep-alive connection with one request in flight. Writes prepared bytes and parses little more than the status
 * and the length of the answer. It costs a few microseconds a request, where an HTTP client would cost as much as the
 * measured server.
 */
export interface HttpConnection {
  /** One request at a time: not again before `onAnswer`. */
  send(request: Buffer, onAnswer: (status: number) => void): void;
  close(): void;
}

/** Sent first, since a server may close a connection that has never sent anything. */
const firstRequest = Buffer.from("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");

/**
 * Connects, and reconnects after an answer that closes the connection. Reports any other close and any failure to
 * `onLost`, once.
 */
export async function openConnection(port: number, onLost: (error: Error) => void): Promise<HttpConnection> {
  let socket: Socket;
  let answered: ((status: number) => void) | null = null;
  let received: Buffer = empty;
  let isClosing = false;

  function lost(why: string): void {
    if (!isClosing) onLost(new Error(`a connection was lost: ${why}`));
    isClosing = true;
  }

  function open(): void {
    const own = connect({ host: "127.0.0.1", port, noDelay: true });
    let isLast = false;
    own.on("error", (error) => lost(error.message));
    own.on("close", () => {
      if (!isLast) lost("the server closed it");
    });
    own.on("data", (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const answer = parseAnswer(received);
      if (answer === null) return;
      received = empty;
      isLast = answer.isLast;
      // The socket buffers what is sent before it has connected.
      if (isLast) open();
      const onAnswer = answered;
      answered = null;
      onAnswer?.(answer.status);
    });
    socket = own;
  }

  open();
  await once(socket!, "connect");
  const connection: HttpConnection = {
    send(request, onAnswer) {
      answered = onAnswer;
      socket.write(request);
    },
    close() {
      isClosing = true;
      socket.destroy();
    },
  };
  await new Promise((resolve) => connection.send(firstRequest, resolve));
  return connection;
}

const empty = Buffer.alloc(0);

/** The answer if it is complete, otherwise null. */
function parseAnswer(bytes: Buffer): { status: number; isLast: boolean } | null {
  const text = bytes.toString("latin1");
  const bodyAt = text.indexOf("\r\n\r\n") + 4;
  if (bodyAt < 4) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  if (length === undefined) throw new Error(`an answer without a length:\n${text}`);
  if (text.length < bodyAt + Number(length)) return null;
  return {
    status: Number(text.slice(9, 12)),
    isLast: text.slice(0, bodyAt).includes("\r\nConnection: close\r\n"),
  };
}
