/**
 * A service with the orders that `support/fill-year.ts` writes: pages of 100, newest first, at little cost. Its other
 * lists are empty. The second argument is the number of orders.
 */
import { createServer } from "node:http";
import { yearId, yearOrder } from "../support/year.ts";
import { serve } from "./serve.ts";

const count = Number(process.argv[3]);
const pageSize = 100;

/** The numbers of the orders whose ids were given as cursors. */
const cursors = new Map<string, number>();

function page(query: URLSearchParams): string {
  const after = query.get("starting_after");
  const newest = after === null ? count : (cursors.get(after) ?? 1) - 1;
  const size = Math.min(pageSize, Number(query.get("limit") ?? 10));
  const oldest = Math.max(1, newest - size + 1);
  const ids = Array.from({ length: newest - oldest + 1 }, (_, i) => yearId("order", newest - i));
  const orders = ids.map((id, i) => yearOrder(count, newest - i, id));
  const last = ids.at(-1);
  const hasMore = oldest > 1 && last !== undefined;
  if (hasMore) cursors.set(last, oldest);
  const next = hasMore ? `"${last}"` : "null";
  return `{"data":[${orders.join(",")}],"url":"/v1/orders","has_more":${hasMore},"cursors":{"next":${next}}}`;
}

/** The order with this id, if it is one: a run asks for the oldest, to know the account. */
function single(id: string): string | null {
  for (let n = 1; n <= count; n++) if (yearId("order", n) === id) return yearOrder(count, n, id);
  return null;
}

const empty = `{"data":[],"url":"/v1/list","has_more":false,"cursors":{"next":null}}`;

function answer(url: string): string {
  const { pathname, searchParams } = new URL(url, "http://service.test");
  if (pathname === "/v1/orders") return page(searchParams);
  const id = /^\/v1\/orders\/([^/]+)$/.exec(pathname)?.[1];
  return (id === undefined ? null : single(id)) ?? empty;
}

serve(
  createServer(({ url = "" }, response) => {
    const body = answer(url);
    response.writeHead(200, {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
    });
    response.end(body);
  }),
);
