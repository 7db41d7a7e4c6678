import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { lifeOf, messagesOf } from "../alerts/timeline-stand.ts";
import { progressOf } from "../inbox/stored-events.ts";
import { sampleEntry, sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll, makeEventsDue, poisonOrder, storeBody, storeEvent } from "./worker-stand.ts";

const digits = "4242424242424242";
const grouped = "4242-4242-4242-4242";
const masked = "[card number ending 4242]";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

/** Every text that the database keeps, whatever the table. */
async function everythingStored(): Promise<string> {
  const { rows } = await db.raw<{ rows: { all: string }[] }>(`
    select concat_ws(' ',
      (select string_agg(convert_from(raw, 'UTF8'), ' ') from inbox.receipts),
      (select string_agg(p::text, ' ') from inbox.progress p),
      (select string_agg(f::text, ' ') from inbox.fetches f),
      (select string_agg(o::text, ' ') from mirror.orders o),
      (select string_agg(t::text, ' ') from mirror.transactions t),
      (select string_agg(v::text, ' ') from mirror.versions v),
      (select string_agg(a::text, ' ') from alerts.alerts a),
      (select string_agg(b::text, ' ') from alerts.outbox b)) as all`);
  return rows[0]?.all ?? "";
}

const alertKeys = (): Promise<string[]> => db("alerts.alerts").orderBy("key").pluck<string[]>("key");

test("a card number in an event is masked in rows, history and bytes, and told once a field", async () => {
  const deps = applyDeps(db);
  const withCard = (id: string, fields: object) => sampleOrder({ id, description: `card ${grouped}`, ...fields });
  const seqs = [
    await storeEvent(
      db,
      "order.created",
      withCard("order-1", { transactions: [sampleEntry({ failure_reason: digits })] }),
    ),
    await storeEvent(db, "order.succeeded", withCard("order-2", {})),
  ];
  await applyBatch(deps, seqs);
  await applyBatch(deps, [await storeEvent(db, "order.refunded", withCard("order-3", {}))]);
  const all = await everythingStored();
  expect(all).not.toContain(digits);
  expect(all).not.toContain(grouped);
  expect(await db("mirror.orders").pluck("description")).toEqual(Array(3).fill(`card ${masked}`));
  expect(await alertKeys()).toEqual(["card-number:order:description", "card-number:order:transactions.failure_reason"]);
  expect(await messagesOf(db, "card-number:order:description")).toEqual(["trigger opened"]);
  expect(await db("alerts.alerts").where("key", "card-number:order:description").first()).toMatchObject({
    rule: "card_number",
    severity: "critical",
    facts: { resource: "order", id: "order-3", path: "description" },
  });
  expect(deps.logged()).not.toContain("4242");
});

test("what was masked is replayed without a change and without another alert", async () => {
  const deps = applyDeps(db);
  const seq = await storeEvent(db, "order.created", sampleOrder({ metadata: { note: digits } }));
  await applyBatch(deps, [seq]);
  const before = await db("mirror.versions").select();
  await replayEvents(db, [seq]);
  await applyBatch(deps, [seq]);
  expect(await db("mirror.versions").select()).toEqual(before);
  expect(await progressOf(db, seq)).toMatchObject({ state: "stale" });
  expect(await lifeOf(db, "card-number:order:metadata.note")).toEqual(["opened opened"]);
});

test.each([
  [
    "ignored",
    JSON.stringify({
      id: "e",
      type: "product.created",
      data: { object: { id: "p", note: digits } },
    }),
    "card-number:event:note",
  ],
  [
    "thin",
    JSON.stringify({
      id: "e",
      type: "order.created",
      data: { object: { id: "order-1", note: digits } },
    }),
    "card-number:order:note",
  ],
  [
    "dead",
    JSON.stringify({
      id: "e",
      type: "order.created",
      data: { object: { ...sampleOrder(), total: "x", note: digits } },
    }),
    "card-number:order:note",
  ],
  [
    "a key that is said again",
    `{"id": "evt-twice", "type": "order.noted", "note": "${digits}", "note": "x"}`,
    "card-number:event:(body)",
  ],
  ["no JSON", `{"note": "${digits}`, "card-number:event:(body)"],
])("the bytes of an event that changes no row are masked: %s", async (_, body, key) => {
  await applyBatch(applyDeps(db), [await storeBody(db, body)]);
  expect(await everythingStored()).not.toContain(digits);
  expect(await alertKeys()).toContain(key);
});

test("the bytes of an event that fails are masked at its first attempt", async () => {
  const healed = await poisonOrder(db, "order-1");
  const seq = await storeEvent(db, "order.created", sampleOrder({ metadata: { note: digits } }));
  await applyBatch(applyDeps(db), [seq]);
  expect(await progressOf(db, seq)).toMatchObject({ state: "failed" });
  expect(await everythingStored()).not.toContain(digits);
  expect(await alertKeys()).toEqual(["card-number:order:metadata.note"]);
  await healed();
  await makeEventsDue(db);
  await applyBatch(applyDeps(db), [seq]);
  expect(await db("mirror.orders").pluck("data")).toMatchObject([{ metadata: { note: masked } }]);
});

test("fields by the hundred are one incident", async () => {
  const metadata = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`note${n}`, digits]));
  await applyBatch(applyDeps(db), [await storeEvent(db, "order.created", sampleOrder({ metadata }))]);
  const sent = await db("alerts.outbox as o").join("alerts.alerts as a", "a.id", "o.alert_id").pluck<string[]>("a.key");
  expect(sent).toEqual(["storm:card-numbers"]);
});
