import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { liveKey, testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { errorCodesOf } from "../../src/parts/sandbox/docs/openapi.ts";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import { type SandboxOptions, startSandbox } from "../../src/parts/sandbox/start-sandbox.ts";
import { errorEnvelopeSchema, errorTypes } from "../../src/core/contract/error-envelope.ts";

/** A JSON object of which a test knows the shape. */
// oxlint-disable-next-line typescript/no-explicit-any -- bodies are looked into freely; the harness checks them against the contract
export type Json = any;

export interface Called {
  status: number;
  body: Json;
  headers: Headers;
}

interface CallOptions {
  /** Null sends no `Authorization`. */
  key?: string | null;
  /** Null sends no idempotency key; left out, a fresh one is sent. */
  idempotency?: string | null;
  headers?: Record<string, string>;
  /** Sent as it is instead of JSON. */
  raw?: string;
}

export interface TestSandbox {
  url: string;
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Called>;
  /** A 2xx answer's body; anything else fails the test. */
  ok(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Json>;
  /** A control's answer, whatever its status. */
  tryControl(method: string, path: string, body?: unknown): Promise<Called>;
  /** A control's answer; anything but a 2xx fails the test. */
  control(method: string, path: string, body?: unknown): Promise<Json>;
  close(): Promise<void>;
}

/** A sandbox on a free port. Every answer to `call` is held against the endpoint's declaration or the error envelope. */
export async function startTestSandbox(
  seed: number | string = 1,
  options: Pick<SandboxOptions, "stateFile" | "wallClock"> = {},
): Promise<TestSandbox> {
  const log = createLog({ level: "fatal", name: "test" });
  const sandbox = await startSandbox({ port: 0, seed, log, ...options });

  async function call(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Called> {
    const headers: Record<string, string> = { ...options.headers };
    const key = options.key === undefined ? testKey : options.key;
    if (key !== null) headers["authorization"] = `Bearer ${key}`;
    const { idempotency = crypto.randomUUID() } = options;
    if (idempotency !== null && method !== "GET") headers["x-svc-idempotency-key"] = idempotency;
    const text = options.raw ?? (body === undefined ? undefined : JSON.stringify(body));
    if (text !== undefined) headers["content-type"] ??= "application/json";
    const response = await fetch(`${sandbox.url}${path}`, {
      method,
      headers,
      ...(text === undefined ? {} : { body: text }),
    });
    const called = {
      status: response.status,
      body: await response.json(),
      headers: response.headers,
    };
    expect(response.headers.get("content-type")).toContain("application/json");
    if (response.ok) expectDeclared(method, path, called);
    else expectEnvelope(method, path, called);
    return called;
  }

  async function ok(method: string, path: string, body?: unknown, options?: CallOptions) {
    const called = await call(method, path, body, options);
    expect(called.status, JSON.stringify(called.body)).toBeLessThan(300);
    return called.body;
  }

  async function tryControl(method: string, path: string, body?: unknown): Promise<Called> {
    const response = await fetch(`${sandbox.url}/_sandbox${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json(), headers: response.headers };
  }

  return {
    url: sandbox.url,
    call,
    ok,
    tryControl,
    async control(method, path, body) {
      const called = await tryControl(method, path, body);
      expect(called.status, JSON.stringify(called.body)).toBeLessThan(300);
      return called.body;
    },
    close: () => sandbox.close(),
  };
}

function expectDeclared(method: string, path: string, called: Called): void {
  const [plain = "", query = ""] = path.split("?");
  if (query.includes("fields")) return;
  const endpoint = declaredAt(method, plain)?.endpoint;
  expect(endpoint, `${method} ${plain} is declared`).toBeDefined();
  expect(called.status).toBe(endpoint?.status);
  const parsed = endpoint?.answer.safeParse(called.body);
  expect(parsed?.success, JSON.stringify(parsed?.error?.issues)).toBe(true);
}

const declared = allEndpoints.map(({ endpoint }) => ({
  endpoint,
  pattern: new RegExp(`^${endpoint.method} /v1${endpoint.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  errorCodes: new Set(errorCodesOf(endpoint)),
}));

function declaredAt(method: string, plainPath: string) {
  return declared.find(({ pattern }) => pattern.test(`${method} ${plainPath}`));
}

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "authorization_error",
  422: "idempotency_error",
  429: "rate_limit_error",
};

function expectEnvelope(method: string, path: string, { status, body, headers }: Called): void {
  const { error } = errorEnvelopeSchema.parse(body);
  expect(Object.keys(error)).toEqual(["type", "code", "message", "param", "request_id", "field_errors"]);
  expect(errorTypes).toContain(error.type);
  expect(error.request_id).toBe(headers.get("x-request-id"));
  const expected = error.code === "field_locked" ? "invalid_request_error" : typeByStatus[status];
  if (expected !== undefined) expect(error.type).toBe(expected);
  const known = declaredAt(method, path.split("?")[0] ?? "");
  // A forced fault answers what the endpoint itself never would.
  if (known === undefined || error.message.startsWith("This fault was ordered")) return;
  const what = `${known.endpoint.name} declares ${error.code}`;
  expect(known.errorCodes.has(error.code), what).toBe(true);
}

/** A refusal: its status and code, and the parameter where given. */
export function expectRefusal(called: Called, status: number, code: string, param?: string): void {
  const { error } = called.body;
  expect([called.status, error?.code], JSON.stringify(called.body)).toEqual([status, code]);
  if (param !== undefined) expect(error.param).toBe(param);
}

let people = 0;

export async function aCustomer(sandbox: TestSandbox, token: string | null = "card_visa") {
  people += 1;
  return sandbox.ok("POST", "/v1/customers", {
    email: `person${people}@example.test`,
    first_name: "Ada",
    last_name: "Lovelace",
    ...(token === null ? {} : { svc_gateway_customer_vault_id: token }),
  });
}

export async function productsOf(sandbox: TestSandbox, currency = "usd"): Promise<Json[]> {
  const { data } = await sandbox.ok("GET", "/v1/products?limit=100");
  return data.filter((product: Json) => product.pricing.currency === currency);
}

/** An order of one product, paid with the customer's default card. */
export async function anOrder(sandbox: TestSandbox, customer: Json, more: object = {}) {
  const [product] = await productsOf(sandbox);
  return sandbox.ok("POST", "/v1/orders", {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items: [{ product_id: product.id, quantity: 2 }],
    ...more,
  });
}

export async function aPlan(sandbox: TestSandbox, code: string): Promise<Json> {
  const { data } = await sandbox.ok("GET", "/v1/plans?limit=100");
  return data.find((plan: Json) => plan.plan_code === code);
}

export async function aSubscription(
  sandbox: TestSandbox,
  customer: Json,
  more: { plan?: string } & Record<string, unknown> = {},
) {
  const { plan = "box-monthly-usd", ...body } = more;
  const { id, billing_cycle } = await aPlan(sandbox, plan);
  const { interval, interval_count } = billing_cycle;
  return sandbox.ok("POST", "/v1/subscriptions", {
    customer_id: customer.id,
    plan_id: id,
    payment_method_id: customer.default_payment_method_id,
    billing_cycle: { interval, interval_count },
    ...body,
  });
}

/** The events about an object, oldest first. */
export async function eventsOf(sandbox: TestSandbox, objectId: string): Promise<Json[]> {
  return (await sandbox.control("GET", `/events?object_id=${objectId}`)).data;
}

export async function eventTypesOf(sandbox: TestSandbox, objectId: string): Promise<string[]> {
  return (await eventsOf(sandbox, objectId)).map((event) => event.type as string);
}

export interface Received {
  raw: Buffer;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  event: Json;
}

/** A webhook receiver that keeps what it gets; `answer` decides the status. */
export async function startReceiver(answer: (received: Received) => number | Promise<number> = () => 200) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const raw = Buffer.concat(chunks);
      const { headers, rawHeaders } = request;
      const delivery = { raw, headers, rawHeaders, event: parsed(raw) };
      received.push(delivery);
      void Promise.resolve(answer(delivery)).then((status) => {
        response.statusCode = status;
        response.end("{}");
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    received,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function parsed(raw: Buffer): Json {
  try {
    return JSON.parse(raw.toString("utf8"));
  } catch {
    return null;
  }
}

export async function register(sandbox: TestSandbox, url: string, enabled_events = ["*"]) {
  return sandbox.ok("POST", "/v1/webhook_endpoints", { url, enabled_events });
}

export { liveKey };
