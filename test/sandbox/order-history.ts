import { type Json, type TestSandbox, aCustomer, anOrder, startTestSandbox } from "./harness.ts";

/** A sandbox with 26 orders of two customers in two instants: 12 in the first, 14 a minute later; every fifth is declined. */
export async function startWithOrders() {
  const sandbox = await startTestSandbox();
  // A stopped clock: all orders of a group share one instant.
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  const rich: Json = await aCustomer(sandbox);
  const poor: Json = await aCustomer(sandbox, "card_insufficient_funds");
  const orders: Json[] = [];
  for (let i = 0; i < 26; i++) {
    if (i === 12) await sandbox.control("POST", "/clock", { advance_seconds: 60 });
    orders.push(await anOrder(sandbox, i % 5 === 0 ? poor : rich));
  }
  return { sandbox, rich, poor, orders };
}

export function idsOf(page: Json): string[] {
  return page.data.map((item: Json) => item.id as string);
}

/** The ids of a list, page by page. */
export async function walkList(sandbox: TestSandbox, path: string, query: string, after?: string): Promise<string[]> {
  const seen: string[] = [];
  let cursor = after === undefined ? "" : `&starting_after=${after}`;
  for (;;) {
    const page = await sandbox.ok("GET", `/v1/${path}?${query}${cursor}`);
    seen.push(...idsOf(page));
    if (!page.has_more) return seen;
    cursor = `&starting_after=${page.cursors.next}`;
  }
}
