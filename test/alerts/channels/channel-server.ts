import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface ReceivedPost {
  path: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  /** As it came. */
  body: string;
}

export type Answer = (response: ServerResponse, request: ReceivedPost) => void;

export interface ChannelServer {
  /** Without a path and a slash at its end. */
  url: string;
  /** Grows with every request. */
  posts: ReceivedPost[];
  /** Resolves once so many requests have come in all. */
  reached(count: number): Promise<void>;
  /** From now on; `{}` and 200 when never called. */
  answerWith(answer: Answer): void;
  close(): Promise<void>;
}

/** A real HTTP server on a free port of 127.0.0.1. */
export async function startChannelServer(): Promise<ChannelServer> {
  const posts: ReceivedPost[] = [];
  const waiting = new Set<() => void>();
  let answer: Answer = (response) => response.end("{}");
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = "", headers, rawHeaders } = request;
    const post = { path: url, headers, rawHeaders, body: await text(request) };
    posts.push(post);
    for (const look of waiting) look();
    answer(response, post);
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posts,
    reached: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (posts.length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    answerWith: (next) => void (answer = next),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const answering =
  (status: number, body = "{}", headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end(body);
