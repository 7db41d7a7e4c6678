import { setTimeout as sleepFor } from "node:timers/promises";
import {
  type AnswerOf,
  type Endpoint,
  type ItemOf,
  type ListEndpoint,
  type ReadCall,
  type ReadEndpoint,
  type WriteCall,
  type WriteEndpoint,
  serviceVersion,
} from "../contract/endpoint.ts";
import { type ListedObject, listPageSchema } from "../contract/lists.ts";
import type { Clock, ServiceClock } from "../../platform/clock.ts";
import { TallyhookError } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { once } from "../../platform/once.ts";
import type { Random } from "../../platform/random.ts";
import { registerSecret } from "../../platform/redaction.ts";
import { type CallSettings, type Caller, type ServiceAnswer, callService } from "./call.ts";
import { type CallPriority, type Sleep, createCallGate, createPace } from "./pace.ts";
import { ServiceAnswerError, ServiceRefusedError } from "./service-errors.ts";

export type ReadOptions = {
  /** `fetch` (default for `get`) goes before `walk` (default for lists). */
  priority?: CallPriority;
  /** Covers the whole call with its waits and retries; for lists, each page. */
  deadlineMs?: number;
  signal?: AbortSignal;
};

export type WriteOptions = ReadOptions & {
  /** A UUID v4. A write without one is attempted only once. */
  idempotencyKey?: string;
};

export interface ServiceClient {
  /**
   * Reads one object or one page. Returns 2xx, and 404 where the service answers `resource_not_found` (check `status`);
   * anything else throws a `ServiceError`.
   */
  get<E extends ReadEndpoint>(
    endpoint: E,
    call: ReadCall<E>,
    options?: ReadOptions,
  ): Promise<ServiceAnswer<AnswerOf<E> | null>>;
  /** Writes. Returns 2xx; anything else throws a `ServiceError`. */
  send<E extends WriteEndpoint>(
    endpoint: E,
    call: WriteCall<E>,
    options?: WriteOptions,
  ): Promise<ServiceAnswer<AnswerOf<E> | null>>;
  /** Every page of a list, in the order asked for; `starting_after` in the query resumes a walk. */
  listPages<E extends ListEndpoint>(
    endpoint: E,
    call: ReadCall<E>,
    options?: ReadOptions,
  ): AsyncIterable<ServicePage<ItemOf<E>>>;
  /** Aborts the calls that wait or are in flight and frees the connections. Idempotent. */
  close(): Promise<void>;
}

export type ServiceClientDependencies = {
  /** Without `/v1`; https, or http on loopback. */
  baseUrl: string;
  apiKey: string;
  log: Log;
  wallClock: Clock;
  /** Receives the `Date` of every answer of the service. */
  serviceClock: ServiceClock;
  random: Random;
  sleep?: Sleep;
};

export type ServiceClientOptions = CallSettings & {
  /** The largest number of requests in flight. */
  maxConcurrent: number;
  deadlineMs: number;
};

/** The retry schedule of calls to the service. */
const callRetryPolicy = { maxAttempts: 6, baseDelayMs: 500, maxDelayMs: 30_000 };

const defaultOptions: Readonly<ServiceClientOptions> = {
  maxConcurrent: 4,
  deadlineMs: 60_000,
  tryTimeoutMs: 15_000,
  maxAnswerBytes: 16 * 1024 * 1024,
  retry: callRetryPolicy,
};

/**
 * A client of the service's API that follows the interface's rules for clients: `Retry-After` with jitter on 429,
 * exponential backoff on 5xx, no repeat of a write without its idempotency key. Opens connections when they are needed;
 * `close` it.
 */
export function createServiceClient(
  dependencies: ServiceClientDependencies,
  options: Partial<ServiceClientOptions> = {},
): ServiceClient {
  const { baseUrl, apiKey, log, wallClock, serviceClock, random } = dependencies;
  // A service, or a proxy before it, may echo the header that carries the key.
  registerSecret(apiKey);
  const settings = { ...defaultOptions, ...options };
  const sleep: Sleep = dependencies.sleep ?? realSleep;
  const base = new URL(baseUrl);
  const prefix = `${base.pathname.replace(/\/+$/, "")}/v1`;
  const closing = new AbortController();
  let closePool = async (): Promise<void> => {};
  // Loaded on demand: most commands make no call, and loading undici takes a fifth of their start.
  const pool = once(async () => {
    const { Pool } = await import("undici");
    const made = new Pool(base.origin, { connections: settings.maxConcurrent });
    closePool = () => made.close();
    return made;
  });
  const pace = createPace();
  const gate = createCallGate({ clock: wallClock, pace, sleep, closing: closing.signal }, settings.maxConcurrent);
  const connection = { pool, gate, pace, sleep, log, wallClock, serviceClock, random, apiKey };
  const caller: Caller = { ...connection, version: serviceVersion };

  async function call<Body>(
    endpoint: Endpoint,
    { params, query = {}, body }: AnyCall,
    { priority = "fetch", deadlineMs = settings.deadlineMs, signal, idempotencyKey }: WriteOptions = {},
  ): Promise<ServiceAnswer<Body>> {
    const path = pathOf(endpoint, params);
    const request = {
      method: endpoint.method,
      path,
      target: withQuery(prefix + path, query),
      body: body === undefined ? null : JSON.stringify(body),
      idempotencyKey: idempotencyKey ?? null,
    };
    const parents = signal === undefined ? [closing.signal] : [closing.signal, signal];
    const bounds = { priority: priority, deadlineMs, parents };
    const answer = await callService(caller, request, bounds, settings);
    // The types of its fields are unchecked: the reader of a field checks it.
    return answer as ServiceAnswer<Body>;
  }

  return {
    get: (endpoint, asked, options) => call(endpoint, asked as AnyCall, options),
    send: (endpoint, sent, options) => call(endpoint, sent as AnyCall, options),
    listPages<E extends ListEndpoint>(endpoint: E, asked: ReadCall<E>, given: ReadOptions = {}) {
      const { params, query = {} } = asked as AnyCall;
      const read = (of: ServiceQuery) => call(endpoint, { params, query: of }, { priority: "walk", ...given });
      const pages: AsyncIterable<unknown> = walkPages(read, pathOf(endpoint, params), query);
      return pages as AsyncIterable<ServicePage<ItemOf<E>>>;
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort(new Error("the client of the service was closed"));
      await closePool();
    },
  };
}

/** A call of any endpoint, as it is sent. */
type AnyCall = {
  params?: Params | undefined;
  query?: ServiceQuery | undefined;
  body?: unknown;
};

const realSleep: Sleep = async (ms, signal) => {
  await sleepFor(ms, undefined, { signal });
};

export type ServicePage<Item = ListedObject> = {
  items: Item[];
  /** False on the last page only. */
  hasMore: boolean;
  /** The `starting_after` of the following page; null on the last one. A walk can resume from it. */
  nextCursor: string | null;
  date: Date;
  requestId: string | null;
};

/** A service that filters after cutting a page returns empty pages; this many in a row mean a loop. */
const maxEmptyPages = 100;

/**
 * The pages of a list, one request at a time, until one has `has_more: false`. Neither a short page nor an absent
 * cursor ends a walk. The next page starts after `cursors.next`, or after the last id where there is none. A page with
 * `has_more: true` and neither is an error, since stopping there would pass for the end; so is a long series of empty
 * pages. A refused cursor, also one refused as `resource_not_found` because its object is gone, throws
 * `ServiceRefusedError`.
 */
async function* walkPages(
  read: (query: ServiceQuery) => Promise<ServiceAnswer>,
  path: string,
  query: ServiceQuery,
): AsyncGenerator<ServicePage, void, undefined> {
  let cursor = query["starting_after"];
  for (let emptyPages = 0; ;) {
    const answer = await read({ ...query, starting_after: cursor });
    if (answer.status === 404 && cursor !== undefined) throw unknownCursor(path, answer);
    const page = readPage(path, answer);
    yield page;
    if (page.nextCursor === null) return;
    emptyPages = page.items.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages === maxEmptyPages) throw badPage(path, answer, `${maxEmptyPages} pages in a row are empty`);
    if (page.nextCursor === cursor) throw badPage(path, answer, "its cursor does not move");
    cursor = page.nextCursor;
  }
}

function readPage(path: string, answer: ServiceAnswer): ServicePage {
  const parsed = listPageSchema.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) throw badPage(path, answer, "its answer is not a page of a list");
  const { data, has_more: hasMore, cursors } = parsed.data;
  const nextCursor = hasMore ? (cursors?.next ?? data.at(-1)?.id ?? null) : null;
  if (hasMore && nextCursor === null) throw badPage(path, answer, "a page says has_more but has no cursor");
  return { items: data, hasMore, nextCursor, date: answer.date, requestId: answer.requestId };
}

const badPage = (path: string, answer: ServiceAnswer, problem: string): ServiceAnswerError =>
  new ServiceAnswerError(`the list cannot be read: ${problem}`, requestOf(path, answer));

const unknownCursor = (path: string, answer: ServiceAnswer): ServiceRefusedError =>
  new ServiceRefusedError("the service does not know the object to start after", requestOf(path, answer), {
    type: null,
    code: "resource_not_found",
    param: "starting_after",
    fieldErrors: [],
  });

const requestOf = (path: string, { status, requestId }: ServiceAnswer) => ({
  method: "GET",
  path,
  attempts: 1,
  status,
  requestId,
});

export type ServiceQuery = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * The path of an endpoint with its ids filled in and escaped. Throws for `.` and `..`, which a server would read as
 * another path, and for an id that is empty or not well-formed text.
 */
export function pathOf({ path }: Pick<Endpoint, "path">, params: Params = {}): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = params[name] ?? "";
    if (isObjectId(id)) return encodeURIComponent(id);
    throw new TallyhookError(`The id ${JSON.stringify(id)} cannot be used in the path ${path}.`);
  });
}

type Params = Readonly<Record<string, string>>;

/** Whether an id can be part of a path. */
export const isObjectId = (id: string): boolean => id !== "" && id !== "." && id !== ".." && !/\p{Cs}/u.test(id);

export function withQuery(path: string, query: ServiceQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}
