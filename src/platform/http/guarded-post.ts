import { type DestinationGuard, DestinationRefused, bareHost } from "./destination-guard.ts";
import { type ExchangeLimits, type HttpAnswer, exchange } from "./exchange.ts";
import { onDemand } from "../on-demand.ts";

export interface GuardedPost {
  readonly host: string;
  /**
   * Resolves with the answer of any status. Follows no redirect. Throws `Unanswered`. The path may be a secret and is
   * never shown.
   */
  post(body: string | Buffer, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer>;
  /** Ends the connections, also those in use. */
  close(): Promise<void>;
}

export interface PostLimits extends ExchangeLimits {
  connections: number;
}

/** Posts to one address, on connections that the guard opens and that are used again. */
export function createGuardedPost(
  guard: DestinationGuard,
  url: URL,
  { connections, ...limits }: PostLimits,
): GuardedPost {
  const host = bareHost(url.hostname);
  const pool = new onDemand.undici.Pool(url.origin, { connections, connect: guard.connector });
  return {
    host,
    async post(body, headers, signal) {
      const path = url.pathname + url.search;
      try {
        return await exchange(pool, { method: "POST", path, headers, body }, limits, signal);
      } catch (error) {
        throw unanswered(host, error);
      }
    },
    close: () => pool.destroy(),
  };
}

/** No answer came. The text is fit for logs and for people: no address with a token. */
export class Unanswered extends Error {
  override readonly name = "Unanswered";
  /** The request was sent, so it may have arrived. */
  readonly mayHaveArrived: boolean;

  constructor(reason: string, mayHaveArrived: boolean) {
    super(reason);
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** No connection was made, so nothing can have arrived. */
const neverConnected = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function unanswered(host: string, error: unknown): Unanswered {
  if (error instanceof DestinationRefused) return new Unanswered(error.message, false);
  const { code: given, name } = error as { code?: unknown; name?: unknown };
  const code = typeof given === "string" && /^[A-Z_0-9]{1,40}$/.test(given) ? given : null;
  const isTls = code !== null && /CERT|^ERR_TLS|^ERR_SSL|^UNABLE_TO/.test(code);
  const why = code ?? (name === "AbortError" ? "interrupted" : "no answer in time");
  return new Unanswered(`${host} could not be reached (${why})`, code === null || !(isTls || neverConnected.has(code)));
}
