import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import type { Called, Json } from "./harness.ts";
import { type GoodRequest, goodRequests } from "./request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let requests: GoodRequest[];
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  requests = await goodRequests(sandbox);
});

type Path = readonly (string | number)[];

/** Every place of a body, objects and arrays included. */
function* placesOf(value: unknown, path: Path = []): Generator<Path> {
  if (path.length > 0) yield path;
  if (typeof value !== "object" || value === null || path.includes("metadata")) return;
  for (const [key, inner] of Object.entries(value)) {
    yield* placesOf(inner, [...path, Array.isArray(value) ? Number(key) : key]);
  }
}

/** The body with something else in one place. */
function withValue(body: unknown, [key, ...rest]: Path, value: unknown): Json {
  if (key === undefined) return value;
  const copy: Json = Array.isArray(body) ? [...body] : { ...(body as object) };
  copy[key] = withValue(copy[key], rest, value);
  return copy;
}

const wrongValues: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  2 ** 53,
  1e308,
  "",
  "text",
  "\u0000\ud800",
  [],
  [[]],
  {},
  { $gt: "" },
  "x".repeat(20_000),
];

const schemaOf = (name: string) => allEndpoints.find(({ endpoint }) => endpoint.name === name)?.endpoint.body;

/** What must not move: how much there is of everything, and what happened. */
const everything = async () => {
  const { counts, events } = await sandbox.control("GET", "");
  const { state: _state, ...shown } = await sandbox.control("GET", "/snapshot");
  return { counts, events, shown };
};

function expectRefused(called: Called, what: unknown): void {
  const seen = JSON.stringify([what, called.body]);
  expect(called.status, seen).toBeGreaterThanOrEqual(400);
  expect(called.status, seen).toBeLessThan(500);
}

test("every endpoint with a JSON body has a good request here", () => {
  const withBody = allEndpoints
    .map(({ endpoint }) => endpoint)
    .filter(({ body, encoding }) => body instanceof z.ZodObject && encoding !== "image");
  expect(requests.map(({ name }) => name).sort()).toEqual(withBody.map(({ name }) => name).sort());
  for (const { name, body } of requests) {
    const parsed = schemaOf(name)?.safeParse(body);
    expect(parsed?.success, `${name}: ${JSON.stringify(parsed?.error?.issues)}`).toBe(true);
  }
});

test("wrong types in every field of every body are refused, and nothing changes", async () => {
  const before = await everything();
  const wrong = requests.flatMap((request) =>
    [...placesOf(request.body)].flatMap((place) =>
      wrongValues
        .map((value) => ({ ...request, place, body: withValue(request.body, place, value) }))
        // What the contract accepts is not wrong.
        .filter(({ name, body }) => schemaOf(name)?.safeParse(body).success === false),
    ),
  );
  expect(wrong.length).toBeGreaterThan(1000);
  while (wrong.length > 0) {
    const batch = wrong.splice(0, 50);
    const answers = await Promise.all(batch.map(({ method, path, body }) => sandbox.call(method, path, body)));
    for (const [i, called] of answers.entries()) {
      expectRefused(called, [batch[i]?.name, batch[i]?.place]);
    }
  }
  expect(await everything()).toEqual(before);
});

test("HTML in every text field is refused, and nothing changes", async () => {
  const before = await everything();
  for (const { name, method, path, body } of requests) {
    for (const place of placesOf(body)) {
      const value = place.reduce<Json>((inner, key) => inner[key], body);
      // A code that nobody knows is an answer of its own: validation says so with 200.
      if (typeof value !== "string" || place[0] === "code") continue;
      const html = withValue(body, place, "<img src=x onerror=alert(1)>");
      // Ids of validation are looked up, not shown.
      if (name === "validateCoupon" && place[0] !== "currency") continue;
      expectRefused(await sandbox.call(method, path, html), [name, place]);
    }
  }
  expect(await everything()).toEqual(before);
});

test("text as long as a request, full of tags without an end, is looked through at once", async () => {
  const email = "tags@example.test";
  const tags = "<a".repeat(400_000);
  for (const body of [
    { email, first_name: tags },
    { email, metadata: { key: tags } },
  ]) {
    expectRefused(await sandbox.call("POST", "/v1/customers", body), Object.keys(body));
  }
});

test("oversized metadata, deep JSON and long lists are refused, and nothing changes", async () => {
  const before = await everything();
  const withMetadata = requests.filter(({ body }) => "metadata" in body);
  const deep = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;
  for (const { method, path, body } of withMetadata) {
    const big = JSON.stringify({ ...body, metadata: { a: "x".repeat(10_000_000) } });
    const nested = JSON.stringify({ ...body, metadata: 0 }).replace('"metadata":0', `"metadata":${deep}`);
    const wide = JSON.stringify({
      ...body,
      metadata: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`key${i}`, i])),
    });
    for (const raw of [big, nested, wide]) {
      expectRefused(await sandbox.call(method, path, undefined, { raw }), [path, raw.length]);
    }
  }
  const [order] = requests.filter(({ name }) => name === "createOrder");
  if (order === undefined) throw new Error("no request for an order");
  const [item] = order.body["items"] as unknown[];
  const items = Array.from({ length: 101 }, () => item);
  expectRefused(await sandbox.call("POST", "/v1/orders", { ...order.body, items }), "items");
  expect(await everything()).toEqual(before);
});

test("strange query parameters are never a 500", async () => {
  const strange = [
    "limit[]=1",
    "limit=1&limit=2",
    "expand[]=x",
    "sort[a]=b",
    "%",
    "a=%ff",
    "created_at[gte][x]=1",
    "__proto__[x]=1",
    "fields=1",
  ];
  for (const { endpoint } of allEndpoints) {
    if (endpoint.method !== "GET" || endpoint.path.includes("{")) continue;
    for (const query of strange) {
      const { status } = await sandbox.call("GET", `/v1${endpoint.path}?${query}`);
      expect(status, `${endpoint.path}?${query}`).toBeLessThan(500);
    }
  }
});
