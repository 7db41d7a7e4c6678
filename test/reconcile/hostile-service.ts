import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Wire = Record<string, unknown> & { id: string; created_at: string };

export interface ListRequest {
  /** `orders`, `customers`, … */
  list: string;
  query: URLSearchParams;
  /** How many requests of this list came before. */
  nth: number;
}

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** Text is sent as it is; `never` is waited for. */
  body: unknown;
}

export const never = Symbol("never");

export interface Quirks {
  /** Answers instead of the service, before anything is looked up. */
  instead?(request: ListRequest): Answer | undefined;
  /** Changes a good page before it is sent. */
  page?(page: Page, request: ListRequest): unknown;
  /** Of one object read by its id. */
  object?(object: Wire | undefined, list: string): Answer | undefined;
  /** The service's clock, relative to this machine's. */
  skewMs?: number;
  ignoresSort?: boolean;
  maxLimit?: number;
}

export interface Page {
  data: Wire[];
  url: string;
  has_more: boolean;
  cursors: { next: string | null };
}

export interface HostileService {
  url: string;
  objects: Record<string, Wire[]>;
  quirks: Quirks;
  requests: ListRequest[];
  /** Who still waits for an answer sees a broken connection. */
  breakConnections(): void;
  close(): Promise<void>;
}

/** A service with the lists of the interface, whose answers a test may spoil. Holds a few orders of one customer. */
export async function startHostileService(orders = 30): Promise<HostileService> {
  const service: HostileService = {
    url: "",
    objects: sampleObjects(orders),
    quirks: {},
    requests: [],
    breakConnections: () => server.closeAllConnections(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server = createServer((request, response) => {
    response.sendDate = false;
    const now = new Date(Date.now() + (service.quirks.skewMs ?? 0));
    response.setHeader("date", now.toUTCString());
    send(response, answerTo(service, request));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return service;
}

function send(response: ServerResponse, { status = 200, headers = {}, body }: Answer): void {
  if (body === never) return;
  const isText = typeof body === "string";
  response.writeHead(status, {
    "content-type": isText ? "text/html" : "application/json",
    ...headers,
  });
  response.end(isText ? body : JSON.stringify(body));
}

export const refusal = (status: number, code: string, param: string | null = null): Answer => ({
  status,
  body: {
    error: {
      type: status === 401 ? "authentication_error" : "invalid_request_error",
      code,
      message: code,
      param,
      request_id: "req_1",
      field_errors: [],
    },
  },
});

function answerTo(service: HostileService, { url = "" }: IncomingMessage): Answer {
  const { pathname, searchParams: query } = new URL(url, "http://service.test");
  const [, , list = "", id] = pathname.split("/");
  const { quirks, objects } = service;
  const all = objects[list] ?? [];
  if (id !== undefined) {
    const object = all.find((one) => one.id === decodeURIComponent(id));
    const spoiled = quirks.object?.(object, list);
    if (spoiled !== undefined) return spoiled;
    return object === undefined ? refusal(404, "resource_not_found") : { body: object };
  }
  const nth = service.requests.filter((before) => before.list === list).length;
  const request = { list, query, nth };
  service.requests.push(request);
  const instead = quirks.instead?.(request);
  if (instead !== undefined) return instead;
  const page = pageOf(all, query, quirks);
  if (page === null) return refusal(400, "invalid_value", "starting_after");
  return { body: quirks.page?.(page, request) ?? page };
}

function pageOf(all: readonly Wire[], query: URLSearchParams, quirks: Quirks): Page | null {
  const isAscending = query.get("sort") === "created_at[asc]" && quirks.ignoresSort !== true;
  const from = query.get("created_at[gte]") ?? "";
  const before = query.get("created_at[lt]") ?? "9999";
  const matching = all.filter(
    (object) =>
      object.created_at >= from &&
      object.created_at < before &&
      ["status", "type"].every((field) => [null, object[field]].includes(query.get(field))),
  );
  matching.sort((a, b) => (key(a) < key(b) ? 1 : -1));
  if (isAscending) matching.reverse();
  const cursor = query.get("starting_after");
  const start = cursor === null ? 0 : matching.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== null && start === 0) return null;
  const limit = Math.min(Number(query.get("limit") ?? 10), quirks.maxLimit ?? 1_000);
  const data = matching.slice(start, start + limit);
  const has_more = start + limit < matching.length;
  return { data, url: "/v1/list", has_more, cursors: { next: data.at(-1)?.id ?? null } };
}

const key = ({ created_at, id }: Wire): string => `${created_at}|${id}`;

const dayMs = 86_400_000;

/** Orders a minute apart and more than two days old, three of each minute in the same second. */
function sampleObjects(orders: number): Record<string, Wire[]> {
  const end = Math.floor((Date.now() - 2 * dayMs) / 60_000) * 60_000;
  const start = end - Math.ceil(orders / 3) * 60_000;
  const customer = { id: "customer-1", email: "ada@example.test", ...times(start) };
  const made = Array.from({ length: orders }, (_, n) => anOrder(n, start + Math.floor(n / 3) * 60_000));
  return {
    customers: [customer],
    orders: made,
    transactions: made.map(({ id, total, created_at, updated_at, customer_id }) => ({
      id: `sale-of-${id}`,
      type: "sale",
      status: "succeeded",
      amount: total,
      currency: "usd",
      customer_id,
      order_id: id,
      created_at: String(created_at),
      updated_at,
    })),
    subscriptions: [],
  };
}

const times = (ms: number) => {
  const at = new Date(ms).toISOString();
  return { created_at: at, updated_at: at };
};

function anOrder(n: number, ms: number): Wire {
  const total = 1_000 + n;
  return {
    id: `order-${String(n).padStart(4, "0")}`,
    order_number: `N${String(n).padStart(7, "0")}`,
    customer_id: "customer-1",
    status: "succeeded",
    subtotal: total,
    discount_amount: 0,
    total,
    currency: "usd",
    metadata: { n: String(n) },
    ...times(ms),
  };
}
