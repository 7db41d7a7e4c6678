import { once } from "node:events";
import { type Socket, connect } from "node:net";

export interface RawAnswer {
  status: number;
  /** Names in lower case. */
  headers: Map<string, string>;
  body: string;
}

export interface RawConnection {
  socket: Socket;
  write(data: string | Buffer): void;
  /** The next answer in the order of arrival (100 Continue counts); null when the connection ends without one. */
  answer(options?: { isHead?: boolean }): Promise<RawAnswer | null>;
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>;
  destroy(): void;
}

/** A connection over which a test sends exactly what it likes, right or wrong. */
export async function openConnection(port: number): Promise<RawConnection> {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  let isEnded = false;
  const waiting: (() => void)[] = [];
  const wake = () => waiting.splice(0).forEach((each) => each());
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
    wake();
  });
  const closed = new Promise<void>((resolve) => {
    for (const event of ["end", "close"]) {
      socket.on(event, () => {
        isEnded = true;
        wake();
        resolve();
      });
    }
  });
  await once(socket, "connect");
  return {
    socket,
    closed,
    write: (data) => void socket.write(data),
    async answer({ isHead = false } = {}) {
      for (;;) {
        const found = takeAnswer(received, isHead);
        if (found !== null) {
          received = found.rest;
          return found.answer;
        }
        if (isEnded) return null;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    destroy: () => socket.destroy(),
  };
}

function takeAnswer(text: string, isHead: boolean): { answer: RawAnswer; rest: string } | null {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const [statusLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const bodyStart = headEnd + 4;
  const bodyEnd = bodyStart + (isHead ? 0 : Number(headers.get("content-length") ?? 0));
  if (text.length < bodyEnd) return null;
  const body = Buffer.from(text.slice(bodyStart, bodyEnd), "latin1").toString("utf8");
  return {
    answer: { status: Number(statusLine.split(" ")[1]), headers, body },
    rest: text.slice(bodyEnd),
  };
}

/** A request as bytes. Text in headers goes out as latin1, as HTTP has it. */
export function requestBytes(request: {
  method?: string;
  path?: string;
  headers?: readonly (readonly [string, string])[];
  body?: Buffer;
}): Buffer {
  const { method = "POST", path = "/webhooks", headers = [], body } = request;
  const lines = [["Host", "127.0.0.1"] as const, ...headers];
  if (body !== undefined && !lines.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name))) {
    lines.push(["Content-Length", String(body.length)]);
  }
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body ?? Buffer.alloc(0)]);
}
