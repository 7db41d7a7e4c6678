import { Agent, request } from "undici";

/** A receiver that has not answered by then has failed (spec, Events). Wall time, whatever the sandbox's clock says. */
const answerTimeoutMs = 30_000;
const connectTimeoutMs = 10_000;
const maxConnectionsPerOrigin = 256;

export interface PostResult {
  status: number | null;
  error: string | null;
}

export interface Transport {
  /** Sends bytes and waits for the status. Never rejects; redirects are not followed. */
  post(url: string, headers: Record<string, string>, body: Buffer): Promise<PostResult>;
  close(): Promise<void>;
}

/** Kept-alive connections, shared by all endpoints. */
export function createTransport(): Transport {
  const agent = new Agent({
    connections: maxConnectionsPerOrigin,
    pipelining: 1,
    headersTimeout: answerTimeoutMs,
    bodyTimeout: answerTimeoutMs,
    connect: { timeout: connectTimeoutMs },
  });
  return {
    async post(url, headers, body) {
      try {
        const answer = await request(url, { dispatcher: agent, method: "POST", headers, body });
        await answer.body.dump();
        return { status: answer.statusCode, error: null };
      } catch (error) {
        return { status: null, error: error instanceof Error ? error.message : String(error) };
      }
    },
    close: () => agent.destroy(),
  };
}
