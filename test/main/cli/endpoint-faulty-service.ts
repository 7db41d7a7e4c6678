import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What befalls the next call that gives a secret. */
export type Fault =
  /** It arrives and is never made. */
  | "swallowed"
  /** It is made, and its answer never comes. */
  | "unanswered"
  /** The service knows the key and shows the secret no more. */
  | "hidden"
  /** It is never made, and answered all the same, without a secret. */
  | "made up";

export interface FaultyService {
  url: string;
  /** The secrets that the service has given, whoever got them, oldest first. */
  given: string[];
  /** Faults for the coming calls that give a secret, in their order. */
  faults: (Fault | null)[];
  /** The idempotency keys of those calls. */
  keys: string[];
  /** Resolves when the fault has befallen a call. */
  struck(fault: Fault): Promise<void>;
  close(): Promise<void>;
}

const givesSecret = (method: string | undefined, path: string): boolean =>
  method === "POST" && /^\/v1\/webhook_endpoints(\/[^/]+\/rotate_secret)?$/.test(path);

/** Stands between a client and the sandbox and makes calls fail at the worst moments. */
export async function startFaultyService(target: string): Promise<FaultyService> {
  const state: Pick<FaultyService, "given" | "faults" | "keys"> = {
    given: [],
    faults: [],
    keys: [],
  };
  const waiting = new Map<Fault, () => void>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? "";
    const isSecret = givesSecret(request.method, path);
    const fault = isSecret ? (state.faults.shift() ?? null) : null;
    if (isSecret) state.keys.push(String(request.headers["x-svc-idempotency-key"]));
    if (fault === "swallowed") return waiting.get(fault)?.();
    if (fault === "made up") {
      const id = path.split("/")[3] ?? "";
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify({ id, message: "rotated" }));
    }
    const headers = Object.fromEntries(
      ["authorization", "content-type", "x-svc-idempotency-key"].flatMap((name) => {
        const value = request.headers[name];
        return typeof value === "string" ? [[name, value]] : [];
      }),
    );
    const answer = await fetch(target + path, {
      method: request.method ?? "GET",
      headers,
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    let body = await answer.text();
    if (isSecret && answer.ok) {
      const shown = JSON.parse(body) as Record<string, unknown>;
      const secret = String(shown["new_signing_secret"] ?? shown["signing_secret"]);
      if (!state.given.includes(secret)) state.given.push(secret);
      if (fault === "hidden") {
        delete shown["new_signing_secret"];
        delete shown["signing_secret"];
        body = JSON.stringify(shown);
      }
    }
    if (fault !== null) waiting.get(fault)?.();
    if (fault === "unanswered") return;
    response.writeHead(answer.status, {
      "content-type": "application/json",
      date: answer.headers.get("date") ?? "",
    });
    response.end(body);
  }

  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...state,
    url: `http://127.0.0.1:${port}`,
    struck: (fault) => new Promise((resolve) => waiting.set(fault, resolve)),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
