import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { endpoints } from "../../src/core/contract/endpoints.ts";

test("every operation of the interface is listed by its own name", async () => {
  const folder = new URL("../../src/core/contract/resources/", import.meta.url);
  const modules = await Promise.all(
    (await readdir(folder)).map((file) => import(new URL(file, folder).href) as Promise<Record<string, unknown>>),
  );
  const defined = modules.flatMap(Object.values).filter(isEndpoint);
  expect(Object.values(endpoints)).toHaveLength(defined.length);
  expect(new Set(Object.values<unknown>(endpoints))).toEqual(new Set<unknown>(defined));
  for (const [name, endpoint] of Object.entries(endpoints)) expect(endpoint.name).toBe(name);
});

const isEndpoint = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "method" in value && "path" in value;
