import { setTimeout as sleepFor } from "node:timers/promises";

import { Pool } from "undici";

import type { Clock, ServiceClock } from "../platform/clock.ts";
import { knowSecret } from "../platform/known-secrets.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { callService } from "./http/call.ts";
import type { Caller, CallSettings, ServiceAnswer } from "./http/call.ts";
import type { HttpMethod } from "../platform/http/exchange.ts";
import { createLaneGate } from "./http/lanes.ts";
import type { Lane, Sleep } from "./http/lanes.ts";
import { createPace } from "./http/pace.ts";
import { withQuery } from "./http/request-path.ts";
import type { ServiceQuery } from "./http/request-path.ts";
import { walkPages } from "./list-pages.ts";
import type { ServicePage } from "./list-pages.ts";
import { serviceVersion } from "./routes/version.ts";

export type ReadOptions = {
  /** `fetch` (default for `get`) goes before `walk` (default for lists). */
  lane?: Lane;
  /** For the whole call with its waits and repeats; for lists, for each page. */
  deadlineMs?: number;
  signal?: AbortSignal;
};

export type WriteOptions = ReadOptions & {
  /** A UUID v4. Without one a write is tried once only. */
  idempotencyKey?: string;
};

export interface ServiceClient {
  /**
   * Reads one object or one page. Answers 2xx, and 404 where the service says `resource_not_found`
   * (look at `status`); anything else throws a `ServiceError`.
   */
  get(path: string, query?: ServiceQuery, options?: ReadOptions): Promise<ServiceAnswer>;
  post(path: string, body: unknown, options?: WriteOptions): Promise<ServiceAnswer>;
  patch(path: string, body: unknown, options?: WriteOptions): Promise<ServiceAnswer>;
  delete(path: string, options?: WriteOptions): Promise<ServiceAnswer>;
  /** Every page of a list, in the order asked for; `starting_after` in the query resumes a walk. */
  listPages(path: string, query?: ServiceQuery, options?: ReadOptions): AsyncIterable<ServicePage>;
  /** Abandons the calls that wait or are under way and frees the connections. Idempotent. */
  close(): Promise<void>;
}

export type ServiceClientDependencies = {
  /** Without `/v1`; https, or http on loopback. */
  baseUrl: string;
  apiKey: string;
  log: Log;
  wallClock: Clock;
  /** Told the `Date` of every answer of the service. */
  serviceClock: ServiceClock;
  random: Random;
  sleep?: Sleep;
};

export type ServiceClientOptions = CallSettings & {
  /** Requests under way at once. */
  maxConcurrent: number;
  deadlineMs: number;
};

const defaultOptions: Readonly<ServiceClientOptions> = {
  maxConcurrent: 4,
  deadlineMs: 60_000,
  tryTimeoutMs: 15_000,
  maxAnswerBytes: 16 * 1024 * 1024,
  retry: { maxAttempts: 6, baseDelayMs: 500, maxDelayMs: 30_000 },
};

/**
 * A client of the service's API that follows its rules for clients: `Retry-After` with jitter on 429,
 * exponential backoff on 5xx, no repeat of a write without its idempotency key. Opens connections when
 * they are needed; `close` it.
 *
 * Source: spec, Authentication 1, Client handling rules, Conventions (lists).
 */
export function createServiceClient(
  dependencies: ServiceClientDependencies,
  options: Partial<ServiceClientOptions> = {},
): ServiceClient {
  const { baseUrl, apiKey, log, wallClock, serviceClock, random } = dependencies;
  // A service, or a proxy before it, may echo the header that it was sent.
  knowSecret(apiKey);
  const settings = { ...defaultOptions, ...options };
  const sleep: Sleep = dependencies.sleep ?? realSleep;
  const base = new URL(baseUrl);
  const prefix = `${base.pathname.replace(/\/+$/, "")}/v1`;
  const closing = new AbortController();
  const pool = new Pool(base.origin, { connections: settings.maxConcurrent });
  const pace = createPace();
  const gate = createLaneGate(
    { clock: wallClock, pace, sleep, closing: closing.signal },
    settings.maxConcurrent,
  );
  const connection = { pool, gate, pace, sleep, log, wallClock, serviceClock, random, apiKey };
  const caller: Caller = { ...connection, version: serviceVersion };

  function call(
    method: HttpMethod,
    path: string,
    query: ServiceQuery,
    body: unknown,
    { lane = "fetch", deadlineMs = settings.deadlineMs, signal, idempotencyKey }: WriteOptions,
  ): Promise<ServiceAnswer> {
    const request = {
      method,
      path,
      target: withQuery(prefix + path, query),
      body: body === undefined ? null : JSON.stringify(body),
      idempotencyKey: idempotencyKey ?? null,
    };
    const parents = signal === undefined ? [closing.signal] : [closing.signal, signal];
    return callService(caller, request, { lane, deadlineMs, parents }, settings);
  }

  const client: ServiceClient = {
    get: (path, query = {}, given = {}) => call("GET", path, query, undefined, given),
    post: (path, body, given = {}) => call("POST", path, {}, body, given),
    patch: (path, body, given = {}) => call("PATCH", path, {}, body, given),
    delete: (path, given = {}) => call("DELETE", path, {}, undefined, given),
    listPages: (path, query = {}, given = {}) =>
      walkPages(client, path, query, { lane: "walk", ...given }),
    async close() {
      if (closing.signal.aborted) return;
      closing.abort(new Error("the client of the service was closed"));
      await pool.close();
    },
  };
  return client;
}

const realSleep: Sleep = async (ms, signal) => {
  await sleepFor(ms, undefined, { signal });
};
