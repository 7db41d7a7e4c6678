import { beforeEach, expect, test } from "vitest";
import { readNewest } from "../../src/core/mirror/changes/read-changes.ts";
import { readStates } from "../../src/core/mirror/read-states.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import { apply, at, sampleOrder, shown } from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const items = [{ product_id: "product-1", quantity: 2, price: 600 }];

const orderAt = (seconds: number, fields = {}) =>
  shown("order", sampleOrder({ updated_at: at(seconds), total: seconds, ...fields }), at(seconds));

const declined = (seconds: number, attempt: number, fields = {}) =>
  orderAt(seconds, {
    status: "failed",
    attempt_count: attempt,
    next_retry_at: at(seconds + 86_400),
    ...fields,
  });

/** The states that the changes of the feed name, the oldest first. */
async function statesOfChanges() {
  const { db } = database;
  const { changes } = await readNewest(db, { limit: 100 });
  return readStates(db, changes);
}

test("each state of an order has its items, whichever state showed them", async () => {
  const { db } = database;
  await apply(db, orderAt(1));
  await apply(db, orderAt(2, { items }));
  await apply(db, orderAt(3, { status: "voided" }));
  const states = await statesOfChanges();
  expect(new Set(states.map((state) => state?.["total"]))).toEqual(new Set([1, 2, 3]));
  for (const state of states) expect(state).toMatchObject({ items });
});

test("an order whose items were never shown has none", async () => {
  await apply(database.db, orderAt(1));
  const [state] = await statesOfChanges();
  expect(state).not.toHaveProperty("items");
});

test("a state of an order has the attempt and the next retry that were known of it then", async () => {
  const { db } = database;
  await apply(db, orderAt(5, { status: "pending" }));
  await apply(db, declined(10, 1));
  await apply(db, declined(20, 2));
  await apply(db, declined(25, 3, { next_retry_at: null }));
  await apply(db, orderAt(30));
  const states = new Map((await statesOfChanges()).map((state) => [state?.["total"], state]));
  expect(states.get(5)).not.toHaveProperty("attempt_count");
  expect(states.get(10)).toMatchObject({ attempt_count: 1, next_retry_at: at(10 + 86_400) });
  expect(states.get(20)).toMatchObject({ attempt_count: 2, next_retry_at: at(20 + 86_400) });
  expect(states.get(25)).toMatchObject({ attempt_count: 3 });
  expect(states.get(25)).not.toHaveProperty("next_retry_at");
  expect(states.get(30)).toMatchObject({ status: "succeeded", attempt_count: 3 });
});

test("where no state is named, an order has its items and retries as the mirror has them now", async () => {
  const { db } = database;
  await apply(db, declined(10, 1, { items }), declined(20, 2));
  const wanted = { resource: "order", id: "order-1", state: null };
  expect(await readStates(db, [wanted])).toMatchObject([{ total: 20, attempt_count: 2, items }]);
});
