import type { Knex } from "knex";
import { beforeEach, expect, test } from "vitest";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { takeTurn } from "../../src/platform/postgres/numbered-rows.ts";
import { at, sampleOrder, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
let db: Knex;
let written = 0;

const write = () =>
  db.transaction((trx) => applySnapshots(trx, [shown("order", sampleOrder({ id: `order-${++written}` }), at(0))]));
const next = async (on: Knex) =>
  (await on.raw<{ rows: { seq: string }[] }>("select seq from feed.next_changes('shop', 500)")).rows.map(({ seq }) =>
    Number(seq),
  );
const done = (on: Knex, seq: number) => on.raw("select feed.done('shop', ?)", [seq]);
const position = async () => Number((await db("feed.consumers").where({ name: "shop" }).first("position")).position);

beforeEach(async () => {
  db = database.db;
  await db("feed.consumers").delete();
  await db.raw("insert into feed.consumers (name, position) values ('shop', feed.readable_until())");
});

test("before the first change of all, a reader begins at 0, also while its writer takes its turn", async () => {
  await db.raw("select setval('feed.change_numbers', 1, false)");
  const writer = await db.transaction();
  try {
    await writer.raw(`select ${takeTurn({ sequence: "feed.change_numbers", lockClass: 7_255 })}`);
    const { rows } = await db.raw("select feed.readable_until() as until");
    expect(rows).toEqual([{ until: "0" }]);
  } finally {
    await writer.rollback();
  }
});

test("a writer that takes its turn does not move a reader back", async () => {
  await write();
  await db.transaction(async (trx) => done(trx, (await next(trx)).at(-1) ?? 0));
  const before = await position();
  const writer = await db.transaction();
  await writer.raw(`select ${takeTurn({ sequence: "feed.change_numbers", lockClass: 7_255 })}`);
  expect(await db.transaction(next)).toEqual([]);
  await writer.rollback();
  expect(await position()).toBe(before);
});

test("a transaction that rolls back moves nothing, and its page comes again", async () => {
  await write();
  const trx = await db.transaction();
  const page = await next(trx);
  await done(trx, page.at(-1) ?? 0);
  await trx.rollback();
  expect(await db.transaction(next)).toEqual(page);
});

test("a change is done only in the transaction that it was handed out in", async () => {
  await write();
  const page = await db.transaction(next);
  await expect(done(db, page.at(-1) ?? 0)).rejects.toMatchObject({ code: "22023" });
});

test("a second, shorter page of one transaction does not take back what the first handed out", async () => {
  await write();
  const last = await db.transaction(async (trx) => {
    const page = await next(trx);
    await trx.raw("select feed.next_changes('shop', 1)");
    await done(trx, page.at(-1) ?? 0);
    return page.at(-1);
  });
  expect(await position()).toBe(last);
});

test("a change beyond the page cannot be done", async () => {
  await write();
  const beyond = db.transaction(async (trx) => done(trx, ((await next(trx)).at(-1) ?? 0) + 1));
  await expect(beyond).rejects.toMatchObject({ code: "22023" });
});

test("a position does not move back", async () => {
  await write();
  const back = db.transaction(async (trx) => {
    const [first = 0, second = 0] = await next(trx);
    await done(trx, second);
    await done(trx, first);
  });
  await expect(back).rejects.toMatchObject({ code: "22023" });
});

test("an unknown consumer is an error", async () => {
  await expect(db.raw("select feed.next_changes('nobody', 1)")).rejects.toMatchObject({
    code: "P0002",
  });
});

test("a transaction with one snapshot is refused, since it would miss changes", async () => {
  await expect(db.transaction(next, { isolationLevel: "repeatable read" })).rejects.toMatchObject({
    code: "25000",
  });
});
