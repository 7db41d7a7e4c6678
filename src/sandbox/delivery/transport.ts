import { Agent, request } from "undici";

/** A receiver that has not answered by then has failed (spec, Events). Wall time, whatever the sandbox's clock says. */
const answerTimeoutMs = 30_000;
const connectTimeoutMs = 10_000;
const maxConnectionsPerOrigin = 256;
/** Nobody is at the address, or it has none. Finding out can take seconds each time. */
const noHostCodes: readonly unknown[] = [
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
];

export interface PostResult {
  status: number | null;
  error: string | null;
  /**
   * No connection came about: nothing else could be sent there at that moment either. `host`: nor elsewhere on that host, and
   * trying costs time.
   */
  unreachable?: "port" | "host";
}

export interface Transport {
  /** Sends bytes and waits for the status. Never rejects; redirects are not followed. */
  post(url: string, headers: Record<string, string>, body: Buffer): Promise<PostResult>;
  close(): Promise<void>;
}

/** Kept-alive connections, shared by all endpoints. A status that came in time counts, whatever becomes of its body. */
export function createTransport(timeoutMs = answerTimeoutMs): Transport {
  const agent = new Agent({
    connections: maxConnectionsPerOrigin,
    pipelining: 1,
    // The deadline of each exchange is exact and covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: connectTimeoutMs },
  });
  return {
    async post(url, headers, body) {
      const signal = AbortSignal.timeout(timeoutMs);
      let status: number | null = null;
      try {
        const sending = { dispatcher: agent, method: "POST", headers, body, signal } as const;
        const answer = await request(url, sending);
        status = answer.statusCode;
        await answer.body.dump();
        return { status, error: null };
      } catch (error) {
        if (status !== null) return { status, error: null };
        if (signal.aborted) return { status, error: `no answer within ${timeoutMs / 1000} s` };
        const message = error instanceof Error ? error.message : String(error);
        const unreachable = unreachablePart(error);
        return { status, error: message, ...(unreachable === null ? {} : { unreachable }) };
      }
    },
    close: () => agent.destroy(),
  };
}

function unreachablePart(error: unknown): "port" | "host" | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  if (error.code === "ECONNREFUSED") return "port";
  return noHostCodes.includes(error.code) ? "host" : null;
}
