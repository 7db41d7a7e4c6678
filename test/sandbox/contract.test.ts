import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, expect, test } from "vitest";

import { exampleBodies } from "../../src/sandbox/example-bodies.ts";
import { allEndpoints } from "../../src/sandbox/resources/all.ts";
import { appendix } from "./appendix.ts";
import type { Json } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let document: Json;
beforeAll(async () => {
  document = await (await fetch(`${sandbox.url}/openapi.json`)).json();
});

test("the OpenAPI document has the 52 endpoints of the appendix and no others", () => {
  const documented = Object.entries(document.paths as Record<string, object>).flatMap(
    ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(appendix).toHaveLength(52);
  expect(documented.sort()).toEqual(appendix.map(({ endpoint }) => endpoint).sort());
});

test("every schema of the document compiles, and every operation says its errors and its header", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  for (const [path, methods] of Object.entries<Json>(document.paths)) {
    for (const [method, operation] of Object.entries<Json>(methods)) {
      const what = `${method} ${path}`;
      const statuses = Object.keys(operation.responses);
      expect(statuses, what).toEqual(expect.arrayContaining(["400", "401", "403", "429"]));
      for (const { content } of Object.values<Json>(operation.responses)) {
        const { schema } = content["application/json"];
        ajv.compile({ ...schema, components: document.components });
      }
      const header = operation.parameters?.find(
        ({ name }: Json) => name === "X-SVC-Idempotency-Key",
      );
      const asked = appendix.find(
        ({ endpoint }) => endpoint === `${method.toUpperCase()} ${path}`,
      )?.header;
      expect(header?.required ?? false, what).toBe(asked?.startsWith("required"));
    }
  }
});

test("what the document says of a list's parameters is what the list takes", () => {
  const names = document.paths["/orders"].get.parameters.map(({ name }: Json) => name as string);
  expect(names).toEqual(
    expect.arrayContaining([
      "limit",
      "starting_after",
      "ending_before",
      "sort",
      "created_at[gte]",
      "total[lte]",
      "fields[orders]",
      "expand",
    ]),
  );
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
