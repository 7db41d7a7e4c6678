import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, expect, test } from "vitest";
import { filterableOrderStatuses, orderStatuses } from "../../src/core/contract/resources/orders.ts";
import { exampleBodies } from "../../src/parts/sandbox/docs/examples.ts";
import { knownEventTypes } from "../../src/parts/sandbox/engine/event-log.ts";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import { appendix } from "./appendix.ts";
import type { Json } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let document: Json;
beforeAll(async () => {
  document = await (await fetch(`${sandbox.url}/openapi.json`)).json();
});

test("the OpenAPI document has the 52 endpoints of the appendix and no others", () => {
  const documented = Object.entries(document.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(appendix).toHaveLength(52);
  expect(documented.sort()).toEqual(appendix.map(({ endpoint }) => endpoint).sort());
});

test("the tags of all operations are declared, each once", () => {
  const used = Object.values<Json>(document.paths)
    .flatMap((methods) => Object.values<Json>(methods))
    .flatMap(({ tags }) => tags);
  expect(document.tags.map(({ name }: Json) => name)).toEqual([...new Set(used)]);
});

// Tools differ in whether a pattern has the flag `u`: Spectral leaves it out.
test.each([true, false])(
  "every schema of the document compiles and holds for its examples, with Unicode patterns: %s",
  (unicodeRegExp) => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, unicodeRegExp });
    const compiled = new Map<string, ReturnType<typeof ajv.compile>>();
    const compile = (schema: object) => {
      const text = JSON.stringify(schema);
      const known = compiled.get(text) ?? ajv.compile({ ...schema, components: document.components });
      compiled.set(text, known);
      return known;
    };
    for (const [path, methods] of Object.entries<Json>(document.paths)) {
      for (const [method, operation] of Object.entries<Json>(methods)) {
        const what = `${method} ${path}`;
        for (const [status, { content, headers }] of Object.entries<Json>(operation.responses)) {
          const { schema, example } = content["application/json"];
          const isValid = compile(schema);
          expect(Object.keys(headers), what).toContain("X-Request-Id");
          if (Number(status) >= 300) continue;
          // The service does not implement these two yet.
          if (/\/(pause|resume)$/.test(path)) continue;
          expect(isValid(example), `${what}: ${JSON.stringify(isValid.errors)}`).toBe(true);
        }
      }
    }
  },
);

test("every operation says its errors and its header", () => {
  for (const [path, methods] of Object.entries<Json>(document.paths)) {
    for (const [method, operation] of Object.entries<Json>(methods)) {
      const what = `${method} ${path}`;
      const statuses = Object.keys(operation.responses);
      expect(statuses, what).toEqual(expect.arrayContaining(["400", "401", "403", "429"]));
      const header = operation.parameters?.find(({ name }: Json) => name === "X-SVC-Idempotency-Key");
      const asked = appendix.find(({ endpoint }) => endpoint === `${method.toUpperCase()} ${path}`)?.header;
      expect(header?.required ?? false, what).toBe(asked?.startsWith("required"));
    }
  }
});

const parametersOf = (path: string) =>
  Object.fromEntries(document.paths[path].get.parameters.map((parameter: Json) => [parameter.name, parameter]));

test("what the document says of a list's parameters is typed, and is what the list takes", async () => {
  const orders = parametersOf("/orders");
  expect(orders.limit.schema).toMatchObject({ type: "integer", minimum: 1 });
  expect(orders["total[lte]"].schema).toEqual({ type: "integer", minimum: 0 });
  expect(orders.expand).toMatchObject({
    style: "form",
    explode: false,
    schema: { type: "array", items: { enum: ["customer", "items", "transactions"] } },
  });
  expect(orders.status.schema.items.enum).toEqual(filterableOrderStatuses);
  for (const path of Object.keys(document.paths)) {
    if (document.paths[path].get === undefined || path.includes("{")) continue;
    const { sort, expand, status } = parametersOf(path);
    const queries = [
      ...(sort?.schema.enum ?? []).map((way: string) => `sort=${way}`),
      ...[expand, status].flatMap((list) =>
        list === undefined
          ? []
          : [`${list.name}=${(list.schema.items ?? list.schema).enum.slice(0, list.explode === false ? 9 : 1)}`],
      ),
    ];
    for (const query of queries) await sandbox.ok("GET", `/v1${path}?${query}`);
  }
});

test("resources have names, their statuses are enums, and events are webhooks", async () => {
  const { schemas } = document.components;
  expect(Object.keys(schemas)).toEqual(
    expect.arrayContaining(["Customer", "Order", "Subscription", "Transaction", "Coupon", "Error"]),
  );
  expect(schemas.Order.properties.status.enum).toEqual(orderStatuses);
  const order = document.paths["/orders"].post.responses["201"];
  expect(order.content["application/json"].schema).toEqual({ $ref: "#/components/schemas/Order" });
  expect(Object.keys(order.headers)).toEqual(expect.arrayContaining(["SVC-Version"]));
  expect(Object.keys(document.paths["/orders"].get.responses["429"].headers)).toEqual(
    expect.arrayContaining(["Retry-After", "RateLimit-Limit", "RateLimit-Reset"]),
  );
  expect(Object.keys(document.webhooks).sort()).toEqual(
    [
      ...knownEventTypes,
      "order.chargeback",
      "order.chargeback_accepted",
      "order.chargeback_dismissed",
      "webhook_endpoint.test",
    ].sort(),
  );
  const again = await (await fetch(`${sandbox.url}/openapi.json`)).json();
  expect(again).toEqual(document);
});

test("/docs shows the document with files of this machine alone", async () => {
  const page = await fetch(`${sandbox.url}/docs`);
  const html = await page.text();
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  const linked = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? "");
  expect(linked.length).toBeGreaterThan(2);
  for (const path of linked) {
    expect(path).toMatch(/^\/docs\//);
    const asset = await fetch(`${sandbox.url}${path}`);
    expect(asset.status).toBe(200);
    expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(50);
  }
});

test("the examples of /docs are bodies that the sandbox takes", () => {
  const names = new Set<string>();
  for (const { endpoint } of allEndpoints) {
    const example = exampleBodies[endpoint.name];
    if (example === undefined) continue;
    names.add(endpoint.name);
    expect(endpoint.body.safeParse(example).error?.issues, endpoint.name).toBeUndefined();
    const { requestBody } = document.paths[endpoint.path][endpoint.method.toLowerCase()];
    expect(requestBody?.content["application/json"].example, endpoint.name).toEqual(example);
  }
  expect([...names].sort()).toEqual(Object.keys(exampleBodies).sort());
});
