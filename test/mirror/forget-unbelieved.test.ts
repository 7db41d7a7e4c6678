import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { forgetUnbelieved } from "../../src/core/mirror/misdated.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { apply, at, sampleOrder, seen, shown } from "./samples.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyTables(db, ["mirror.unbelieved", "mirror.misdated"]));

const received = { receivedAt: canonicalTimestamp(at(0)) };
const misdated = (id: string): Snapshot => ({
  ...shown("order", sampleOrder({ id, updated_at: "9999-01-01T00:00:00.000Z" })),
  ...received,
});
const days = (n: number) =>
  db("mirror.unbelieved").update({ recorded_at: db.raw("now() - make_interval(days => ?)", [n]) });
const kept = () => db("mirror.unbelieved").orderBy("id").pluck<string[]>("id");

test("a state that was dated in the future goes after 90 days, once its object waits no more", async () => {
  await apply(db, misdated("a"), misdated("b"));
  await apply(db, seen("order", sampleOrder({ id: "a" }), 60));
  await days(89);
  expect(await forgetUnbelieved(db)).toBe(0);
  await days(91);
  expect(await forgetUnbelieved(db)).toBe(1);
  expect(await kept()).toEqual(["b"]);
  expect(await forgetUnbelieved(db)).toBe(0);
});

test("an event that is replayed after that brings its state again, and the mirror stays as it is", async () => {
  await apply(db, misdated("a"));
  await apply(db, seen("order", sampleOrder({ id: "a" }), 60));
  await days(91);
  await forgetUnbelieved(db);
  const row = await db("mirror.orders").where("id", "a").first();
  await apply(db, misdated("a"));
  expect(await kept()).toEqual(["a"]);
  expect(await db("mirror.orders").where("id", "a").first()).toEqual(row);
});

test("what a person overruled stays, since an event that repeats it must change nothing", async () => {
  await apply(db, misdated("a"));
  const [heal] = await db("mirror.heals")
    .insert({
      resource: "order",
      id: "a",
      healed_by: "ann",
      reason: "x",
      after_sha256: "x",
      changed_columns: [],
    })
    .returning<{ seq: string }[]>("seq");
  await db("mirror.unbelieved").update({ heal: heal?.seq });
  await db("mirror.misdated").delete();
  await days(4_000);
  expect(await forgetUnbelieved(db)).toBe(0);
  expect(await kept()).toEqual(["a"]);
});
