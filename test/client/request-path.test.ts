import { describe, expect, it } from "vitest";
import { pathOf, withQuery } from "../../src/core/client/service-client.ts";
import { getOrder } from "../../src/core/contract/resources/orders.ts";

describe("the path of an endpoint", () => {
  it.each([
    ["a3c2d9c0-4a8e-4a43-9d86-1f5d1f4b7a01", "/orders/a3c2d9c0-4a8e-4a43-9d86-1f5d1f4b7a01"],
    ["../customers", "/orders/..%2Fcustomers"],
    ["o1?expand=x#y", "/orders/o1%3Fexpand%3Dx%23y"],
    ["a b\r\nHost: x", "/orders/a%20b%0D%0AHost%3A%20x"],
    ["😀", "/orders/%F0%9F%98%80"],
  ])("keeps the id %j within its place", (id, path) => {
    expect(pathOf(getOrder, { id })).toBe(path);
  });

  it.each(["", ".", "..", "\ud800"])("refuses %j", (id) => {
    expect(() => pathOf(getOrder, { id })).toThrow("cannot be used in the path /orders/{id}");
  });
});

it("withQuery writes brackets and values so that they come back as they were", () => {
  const target = withQuery("/orders", {
    "created_at[gte]": "2026-01-01T00:00:00+02:00",
    q: "a&b=c",
  });
  const read = new URL(target, "http://localhost").searchParams;
  expect(Object.fromEntries(read)).toEqual({
    "created_at[gte]": "2026-01-01T00:00:00+02:00",
    q: "a&b=c",
  });
  expect(withQuery("/orders", {})).toBe("/orders");
});
