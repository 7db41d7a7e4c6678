import { beforeEach, expect, test } from "vitest";
import {
  findByEmail,
  findById,
  findByIdStart,
  findByLastFour,
  findByOrderNumber,
  findChargebacks,
  listRelated,
  relations,
} from "../../src/core/mirror/look-up.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import { apply, at, sampleCustomer, sampleEntry, sampleOrder, shown } from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const card = { id: "pm-1", card_brand: "visa", card_last_four: "4242" };
const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

test("an object is found by its id, whatever it is, and nothing by what is no id", async () => {
  const { db } = database;
  await apply(
    db,
    shown("order", sampleOrder({ transactions: [sampleEntry()] })),
    shown("customer", sampleCustomer({ id: "order-1" })),
  );
  expect((await findById(db, "order-1")).map(({ resource }) => resource)).toEqual(["order", "customer"]);
  expect(await findById(db, "SALE-1")).toMatchObject([
    { resource: "transaction", id: "sale-1", type: "sale", amount: "1000", currency: "usd" },
  ]);
  expect(await findById(db, "x".repeat(300))).toEqual([]);
  expect(await findById(db, "a\u0000")).toEqual([]);
});

test("an e-mail address is found whole and in any case, never a part of it", async () => {
  const { db } = database;
  await apply(db, shown("customer", sampleCustomer({ email: "Jane.Doe@Example.com" })));
  expect(idsOf(await findByEmail(db, "jane.doe@example.COM", 9))).toEqual(["customer-1"]);
  expect(await findByEmail(db, "doe@example.com", 9)).toEqual([]);
  expect(await findByEmail(db, "%@example.com", 9)).toEqual([]);
});

test("an id is found by its beginning, from eight characters on", async () => {
  const { db } = database;
  await apply(
    db,
    shown("order", sampleOrder({ id: "abcdefgh-1" })),
    shown("customer", sampleCustomer({ id: "abcdefgh-2" })),
  );
  await apply(db, shown("order", sampleOrder({ id: "abcdefgi" })));
  expect(idsOf(await findByIdStart(db, "abcdefgh", 9))).toEqual(["abcdefgh-1", "abcdefgh-2"]);
  expect(idsOf(await findByIdStart(db, "ABCDEFGH-1", 9))).toEqual(["abcdefgh-1"]);
  expect(await findByIdStart(db, "abcdefg", 9)).toEqual([]);
  expect(await findByIdStart(db, "abcdefg%", 9)).toEqual([]);
});

test.each(["Web-1001", "web-1001", "WEB-1001"])(
  "a number in capitals and small letters is found as %s",
  async (typed) => {
    await apply(database.db, shown("order", sampleOrder({ order_number: "Web-1001" })));
    expect(idsOf(await findByOrderNumber(database.db, typed, 9))).toEqual(["order-1"]);
  },
);

test("orders of one card and one moment are each listed once, however the list is cut", async () => {
  const { db } = database;
  await apply(
    db,
    ...Array.from({ length: 7 }, (_, n) =>
      shown("order", sampleOrder({ id: `o${n}`, payment_method: card, created_at: at(n < 5 ? 0 : 1) })),
    ),
  );
  const found: string[] = [];
  for (let after: string | null = null; ;) {
    const [next]: { id: string }[] = await findByLastFour(db, "4242", { after, limit: 1 });
    if (next === undefined) break;
    found.push(next.id);
    after = next.id;
  }
  expect(found).toEqual(["o6", "o5", "o4", "o3", "o2", "o1", "o0"]);
});

test("what belongs to an object is listed, the newest first", async () => {
  const { db } = database;
  await apply(
    db,
    shown("order", sampleOrder({ transactions: [sampleEntry()], subscription_id: "s1" })),
    shown("order", sampleOrder({ id: "order-2", created_at: at(5) })),
  );
  const of = (name: string, resource: string) => {
    const relation = relations.find((each) => each.name === name && each.of === resource);
    if (relation === undefined) throw new Error(`${resource} has no ${name}`);
    return relation;
  };
  const all = { after: null, limit: 9 };
  expect(idsOf(await listRelated(db, of("orders", "customer"), "customer-1", all))).toEqual(["order-2", "order-1"]);
  expect(idsOf(await listRelated(db, of("orders", "subscription"), "s1", all))).toEqual(["order-1"]);
  expect(idsOf(await listRelated(db, of("transactions", "order"), "order-1", all))).toEqual(["sale-1"]);
});

test("a chargeback is found by its order", async () => {
  const { db } = database;
  await apply(db, shown("order", sampleOrder({ status: "chargeback" })));
  expect(await findChargebacks(db, ["order-1", "none"])).toMatchObject([
    { key: "order-1", state: "opened", amount: "1000" },
  ]);
  expect(await findChargebacks(db, [])).toEqual([]);
});

test("each search and each list is answered by an index", async () => {
  const { db } = database;
  const asked: string[] = [];
  const watched = db.withUserParams({});
  watched.on("query", ({ sql, bindings }: { sql: string; bindings: unknown[] }) => {
    asked.push(JSON.stringify({ sql, bindings }));
  });
  await findById(watched, "a");
  await findByOrderNumber(watched, "a", 9);
  await findByEmail(watched, "a@b", 9);
  await findByLastFour(watched, "4242", { after: null, limit: 9 });
  for (const relation of relations) {
    await listRelated(watched, relation, "a", { after: "b", limit: 9 });
  }
  expect(asked.length).toBeGreaterThan(7);
  for (const each of asked) {
    const { sql, bindings } = JSON.parse(each) as { sql: string; bindings: string[] };
    const plan = await db.transaction(async (trx) => {
      await trx.raw("set local enable_seqscan = off");
      const numbered = sql.replaceAll(/\$\d+/g, "?");
      const { rows } = await trx.raw<{ rows: Record<string, string>[] }>(`explain ${numbered}`, bindings);
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    });
    expect(plan, sql).not.toContain("Seq Scan");
  }
});
