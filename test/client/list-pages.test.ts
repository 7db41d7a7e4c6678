import type { RequestListener } from "node:http";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { listOrders } from "../../src/core/contract/resources/orders.ts";
import { ServiceAnswerError } from "../../src/core/client/service-errors.ts";
import { type ServiceStand, sendJson, standUp } from "./service-stand.ts";

const stands: ServiceStand[] = [];

async function stand(listener: RequestListener): Promise<ServiceStand> {
  const made = await standUp(listener);
  stands.push(made);
  return made;
}

afterEach(async () => {
  await Promise.all(stands.splice(0).map((made) => made.close()));
});

/** A list of the service over given ids; `showCursor` says whether it shows `cursors.next`. */
function list(ids: string[], showCursor: boolean): RequestListener & { cursors: (string | null)[] } {
  const cursors: (string | null)[] = [];
  const listener: RequestListener = (request, response) => {
    const query = new URL(request.url ?? "", "http://localhost").searchParams;
    const after = query.get("starting_after");
    cursors.push(after);
    const start = after === null ? 0 : ids.indexOf(after.replace(/^cursor:/, "")) + 1;
    const end = start + Number(query.get("limit") ?? 10);
    const data = ids.slice(start, end).map((id) => ({ id }));
    const last = data.at(-1)?.id;
    sendJson(response, 200, {
      data,
      url: "/v1/orders",
      has_more: end < ids.length,
      ...(showCursor ? { cursors: { next: last === undefined ? null : `cursor:${last}` } } : {}),
    });
  };
  return Object.assign(listener, { cursors });
}

async function walk(made: ServiceStand, query = {}): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of made.client.listPages(listOrders, { query })) {
    ids.push(...page.items.map((item) => item.id));
  }
  return ids;
}

describe("walking a list", () => {
  it("sees every object once, with and without cursors, at any page size", async () => {
    const sizes = fc.integer({ min: 0, max: 30 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 12 }), fc.boolean(), async (n, limit, c) => {
        const ids = Array.from({ length: n }, (_, index) => `o${index}`);
        const made = await standUp(list(ids, c));
        try {
          expect(await walk(made, { limit })).toEqual(ids);
        } finally {
          await made.close();
        }
      }),
      { numRuns: 30 },
    );
  });

  it("prefers the cursor that the service shows to the last id", async () => {
    const listener = list(["a", "b", "c"], true);
    await walk(await stand(listener), { limit: 1 });
    expect(listener.cursors).toEqual([null, "cursor:a", "cursor:b"]);
  });

  it("resumes where it is told", async () => {
    const made = await stand(list(["a", "b", "c"], false));
    expect(await walk(made, { limit: 1, starting_after: "a" })).toEqual(["b", "c"]);
  });

  it("shows where it can be resumed, and that the last page is the last", async () => {
    const made = await stand(list(["a", "b"], false));
    const pages = [];
    for await (const page of made.client.listPages(listOrders, { query: { limit: "1" } })) pages.push(page);
    expect(pages).toMatchObject([
      { hasMore: true, nextCursor: "a" },
      { hasMore: false, nextCursor: null },
    ]);
    expect(pages[0]?.date.getTime()).not.toBeNaN();
  });

  it("goes on after a page that is shorter than asked, or empty", async () => {
    const pages = [
      { data: [{ id: "a" }], has_more: true, cursors: { next: "1" } },
      { data: [], has_more: true, cursors: { next: "2" } },
      { data: [{ id: "b" }], has_more: false, cursors: { next: "3" } },
    ];
    let asked = 0;
    const made = await stand((_request, response) => sendJson(response, 200, pages[asked++]));
    expect(await walk(made, { limit: 100 })).toEqual(["a", "b"]);
    expect(asked).toBe(3);
  });

  it("keeps every field of the objects", async () => {
    const made = await stand((_request, response) =>
      sendJson(response, 200, { data: [{ id: "a", new_field: { x: 1 } }], has_more: false }),
    );
    for await (const page of made.client.listPages(listOrders, {})) {
      expect(page.items).toEqual([{ id: "a", new_field: { x: 1 } }]);
    }
  });

  it.each([
    ["says there is more and shows no way on", { data: [], has_more: true }],
    ["does not say whether there is more", { data: [{ id: "a" }] }],
    ["holds no list", { data: { id: "a" }, has_more: false }],
    ["holds an object without id", { data: [{}], has_more: false }],
    ["is null", null],
  ])("fails on a page that %s, instead of taking it for the end", async (_case, body) => {
    const made = await stand((_request, response) => sendJson(response, 200, body));
    await expect(walk(made)).rejects.toBeInstanceOf(ServiceAnswerError);
  });

  it("fails on a cursor that does not move, instead of walking for ever", async () => {
    const made = await stand((_request, response) =>
      sendJson(response, 200, { data: [{ id: "a" }], has_more: true, cursors: { next: "a" } }),
    );
    await expect(walk(made)).rejects.toThrow("its cursor does not move");
  });

  it("stops asking when nobody reads on", async () => {
    const listener = list(["a", "b", "c"], false);
    const made = await stand(listener);
    for await (const page of made.client.listPages(listOrders, { query: { limit: "1" } })) {
      if (page.nextCursor === "a") break;
    }
    expect(listener.cursors).toEqual([null]);
  });
});
