import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { claimNext } from "../../src/core/inbox/claim.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { mirrorResources } from "../../src/core/mirror/resources.ts";
import { allColumns } from "../../src/core/mirror/resources/resource.ts";
import { applySnapshots, defaultWriterLimits } from "../../src/core/mirror/write/apply.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { applyBatch, applyNext, eventRetryPolicy } from "../../src/core/worker/apply-batch.ts";
import { progressOf, storeRow } from "../inbox/stored-events.ts";
import { at, rowOf, sampleCustomer, sampleEntry, sampleOrder, sampleTransaction, shown } from "../mirror/samples.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import {
  applyDeps,
  emptyAll,
  makeEventsDue,
  poisonOrder,
  refuseOrder,
  slowOrder,
  storeBody,
  storeEvent,
} from "./worker-stand.ts";
import { statementsOf } from "../support/statements-of.ts";

let database: TestDatabase;
let db: Knex;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 8 });
  ({ db } = database);
});
afterAll(() => database.destroy());
beforeEach(() => emptyAll(db));

const orderNamed = (id: string, fields: Record<string, unknown> = {}) => sampleOrder({ id, ...fields });
const statesOf = (seqs: readonly number[]) => Promise.all(seqs.map(async (seq) => (await progressOf(db, seq)).state));

/**
 * How many deadlocks there were. What a session did is counted at once where it asks, and within a second elsewhere.
 */
async function deadlocksOf(of: Knex): Promise<number> {
  const { rows } = await of.raw<{ rows: { deadlocks: string }[] }>(
    "select pg_stat_get_db_deadlocks(oid) as deadlocks from pg_database where datname = current_database()",
  );
  return Number(rows[0]?.deadlocks);
}

describe("a batch of events", () => {
  test("of bodies that are too much for one transaction is applied all the same", async () => {
    const description = "x".repeat(3 * 1024 * 1024);
    const seqs: number[] = [];
    for (let n = 0; n < 5; n++)
      seqs.push(await storeEvent(db, "order.created", orderNamed(`large-${n}`, { description })));
    await applyBatch(applyDeps(db), seqs);
    expect(await statesOf(seqs)).toEqual(seqs.map(() => "applied"));
    // Who wrote the row last: one transaction for the first three, which reach the limit, one for the others.
    const { rows } = await db.raw<{ rows: { n: string }[] }>(
      "select count(*) as n from inbox.progress group by xmin::text order by min(seq)",
    );
    expect(rows.map(({ n }) => Number(n))).toEqual([3, 2]);
  });

  test("brings mirror and inbox up to date together", async () => {
    const seqs = [
      await storeEvent(db, "order.created", sampleOrder({ status: "pending" })),
      await storeEvent(db, "order.succeeded", sampleOrder({ updated_at: at(5) })),
      await storeEvent(db, "customer.created", sampleCustomer()),
    ];
    await applyBatch(applyDeps(db), seqs);
    expect(await statesOf(seqs)).toEqual(["stale", "applied", "applied"]);
    expect(await progressOf(db, seqs[1]!)).toMatchObject({
      attempts: 1,
      reason: null,
      resource_type: "order",
      resource_id: "order-1",
      settled_at: expect.any(Date) as unknown,
    });
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({
      status: "succeeded",
      last_cause: `event:${seqs[1]}`,
    });
  });

  test("is applied once, however often it is handed over, and again after a replay", async () => {
    const deps = applyDeps(db);
    const seqs = [await storeEvent(db, "order.created", sampleOrder())];
    await applyBatch(deps, [...seqs, ...seqs, 999]);
    await applyBatch(deps, seqs);
    expect(await progressOf(db, seqs[0]!)).toMatchObject({ state: "applied", attempts: 1 });
    await db("mirror.orders").update({ status: "edited by hand", version: "" });
    await replayEvents(db, seqs);
    await applyBatch(deps, seqs);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ status: "succeeded" });
  });

  test("leaves nothing behind when its end fails: rows, history, reads, alerts and states are one transaction", async () => {
    const thin = await storeEvent(db, "order.created", { id: "order-2" });
    const declined = sampleOrder({ status: "failed", failure_code: "stolen_card" });
    const whole = await storeEvent(db, "order.failed", declined);
    await db.raw("alter table inbox.progress add constraint no_end check (state <> 'applied')");
    try {
      await applyBatch(applyDeps(db), [thin, whole]);
    } finally {
      await db.raw("alter table inbox.progress drop constraint no_end");
    }
    expect(await statesOf([thin, whole])).toEqual(["failed", "failed"]);
    const tables = ["mirror.orders", "mirror.versions", "inbox.fetches", "alerts.alerts", "alerts.outbox"];
    for (const table of tables) expect(await db(table)).toEqual([]);

    await makeEventsDue(db);
    await applyBatch(applyDeps(db), [thin, whole]);
    for (const table of tables) expect(await db(table)).not.toEqual([]);
  });

  test("does nothing for no events", async () => {
    expect(await statementsOf(db, () => applyBatch(applyDeps(db), []))).toEqual([]);
  });
});

describe("what an event says that cannot be applied", () => {
  test.each([
    ["broken JSON", "{", "dead", "body: not JSON in UTF-8"],
    ["another type", '{"type":"product.updated","data":{"object":{"id":"p"}}}', "ignored", "product.updated"],
    ["no object", '{"type":"order.created","data":{"object":null}}', "dead", "data.object: no object"],
    ["an array", "[1,2]", "ignored", "type (none)"],
  ])("%s", async (_name, body, state, reason) => {
    const seq = await storeBody(db, body);
    await applyBatch(applyDeps(db), [seq]);
    expect(await progressOf(db, seq)).toMatchObject({
      state,
      reason: expect.stringContaining(reason) as unknown,
      next_attempt_at: null,
    });
  });

  test("money that cannot be read: dead, the field named, the rest of the batch applied", async () => {
    const bad = await storeEvent(db, "order.created", sampleOrder({ total: "12.50" }));
    const good = await storeEvent(db, "order.created", orderNamed("order-2"));
    await applyBatch(applyDeps(db), [bad, good]);
    expect(await progressOf(db, bad)).toMatchObject({
      state: "dead",
      reason: expect.stringMatching(/^total: /) as unknown,
      resource_type: "order",
      resource_id: "order-1",
    });
    expect(await statesOf([good])).toEqual(["applied"]);
  });

  test.each([
    ["no text", 7],
    ["too long", "x".repeat(300)],
    ["control characters", "order\u0000-1"],
  ])("an id that cannot be one (%s) is not kept", async (_name, id) => {
    const seq = await storeEvent(db, "order.created", { ...sampleOrder({ total: "12.50" }), id });
    await applyBatch(applyDeps(db), [seq]);
    expect(await progressOf(db, seq)).toMatchObject({ state: "dead", resource_id: null });
  });

  test("hostile keys and deep nesting harm nobody", async () => {
    const object = JSON.stringify(sampleOrder()).replace(
      "{",
      '{"__proto__":{"id":"x"},"constructor":{"prototype":{}},',
    );
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const seqs = [
      await storeBody(db, `{"type":"order.created","data":{"object":${object}}}`),
      await storeBody(
        db,
        `{"type":"order.created","data":{"object":${object.replace('"order-1"', '"order-2"').replace("{", `{"deep":${deep},`)}}}`,
      ),
    ];
    await applyBatch(applyDeps(db), seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "dead"]);
    expect(({} as Record<string, unknown>)["id"]).toBeUndefined();
  });
});

test("two bodies under one id are both applied", async () => {
  const seqs: number[] = [];
  for (const [n, status] of ["pending", "succeeded"].entries()) {
    const data = { object: sampleOrder({ status, updated_at: at(n) }) };
    const body = JSON.stringify({ id: "evt_twice", type: "order.created", data });
    const seq = await storeRow(db, { eventId: "evt_twice", raw: Buffer.from(body) });
    await applyBatch(applyDeps(db), [seq]);
    seqs.push(seq);
  }
  expect(await statesOf(seqs)).toEqual(["applied", "applied"]);
});

test("an event whose object stays locked waits alone and counts no attempt; its neighbours are applied", async () => {
  const other = await db.transaction();
  const seqs: number[] = [];
  try {
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.created", orderNamed("held"))]);
    await other.raw("select from mirror.orders where id = 'held' for update");
    for (const id of ["a", "held", "b"]) {
      const object = orderNamed(id, { updated_at: at(5) });
      seqs.push(await storeEvent(db, "order.updated", object, "2025-03-02T12:00:00.000Z"));
    }
    const writerLimits = { ...defaultWriterLimits, lockMs: 50 };
    await applyBatch({ ...applyDeps(db), writerLimits }, seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "failed", "applied"]);
    const { attempts, reason } = await progressOf(db, seqs[1]!);
    expect(attempts).toBe(0);
    expect(reason).toMatch(/^waits for a lock since \S+Z of process \d+ \(/);
  } finally {
    await other.rollback();
  }
  await makeEventsDue(db);
  await applyBatch(applyDeps(db), seqs);
  expect(await statesOf(seqs)).toEqual(["applied", "applied", "applied"]);
});

test("one locked row holds up twenty others for one lock time-out", async () => {
  const held = orderNamed("held");
  await applyBatch(applyDeps(db), [await storeEvent(db, "order.created", held)]);
  const seqs = [await storeEvent(db, "order.updated", { ...held, updated_at: at(5) })];
  for (let n = 0; n < 20; n++) seqs.push(await storeEvent(db, "order.created", orderNamed(`other-${n}`)));
  const other = await db.transaction();
  try {
    await other.raw("select from mirror.orders where id = 'held' for update");
    const startedAt = performance.now();
    await applyBatch(applyDeps(db), seqs);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const [locked, ...neighbours] = await statesOf(seqs);
    expect(locked).toBe("failed");
    expect(new Set(neighbours)).toEqual(new Set(["applied"]));
  } finally {
    await other.rollback();
  }
});

test("fifty locked rows hold up twenty others for one lock time-out, and each event says who holds it", async () => {
  const held = Array.from({ length: 50 }, (_, n) => orderNamed(`held-${n}`));
  const stored: number[] = [];
  for (const order of held) stored.push(await storeEvent(db, "order.created", order));
  await applyBatch(applyDeps(db), stored);
  const locked: number[] = [];
  for (const order of held) locked.push(await storeEvent(db, "order.updated", { ...order, updated_at: at(5) }));
  const free: number[] = [];
  for (let n = 0; n < 20; n++) free.push(await storeEvent(db, "order.created", orderNamed(`other-${n}`)));
  const other = await db.transaction();
  try {
    const { rows } = await other.raw<{ rows: { pid: number }[] }>(
      "select pg_backend_pid() as pid, count(*) from (select from mirror.orders for update) locked",
    );
    const startedAt = performance.now();
    await applyBatch(applyDeps(db), [...locked, ...free]);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(new Set(await statesOf(free))).toEqual(new Set(["applied"]));
    expect(new Set(await statesOf(locked))).toEqual(new Set(["failed"]));
    const holders = await Promise.all(
      locked.map(async (seq) => /process (\d+)/.exec(String((await progressOf(db, seq)).reason))),
    );
    expect(new Set(holders.map((holder) => holder?.[1]))).toEqual(new Set([String(rows[0]?.pid)]));
  } finally {
    await other.rollback();
  }
});

describe("free text of 9,000 characters", () => {
  /** That no compression shortens. */
  const random = seededRandom("free text");
  const long = Array.from({ length: 9_000 }, () => String.fromCodePoint(0x20000 + Math.floor(random() * 40_000))).join(
    "",
  );

  test("is cut where a column has an index, and whole in data", async () => {
    const payment_method = { id: "card-1", card_brand: long, card_last_four: long };
    const seqs = [
      await storeEvent(
        db,
        "order.created",
        sampleOrder({
          order_number: long,
          description: long,
          failure_code: long,
          coupon_code: long,
          payment_method,
        }),
      ),
      await storeEvent(
        db,
        "customer.created",
        sampleCustomer({ email: long, phone: `+${long}`, first_name: long, company: long }),
      ),
    ];
    await applyBatch(applyDeps(db), seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "applied"]);
    const order = await db("mirror.orders").first<{ order_number: string; data: object }>();
    expect(Array.from(order.order_number)).toHaveLength(500);
    expect(order.data).toMatchObject({ order_number: long });
  });

  test("every index on free text of the mirror is on a column that is cut", async () => {
    const { rows } = await db.raw<{ rows: { table: string; column: string }[] }>(
      `select distinct t.relname as table, a.attname as column
       from pg_index i join pg_class t on t.oid = i.indrelid
       join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and a.atttypid = 'text'::regtype
       where t.relnamespace = 'mirror'::regnamespace
         -- An expression may cut by itself.
         and regexp_replace(pg_get_indexdef(i.indexrelid), '"left"\\(COALESCE\\(\\w+, ''''::text\\), \\d+\\)', '', 'g') ~ ('[( ]' || a.attname || '[,) ]')`,
    );
    const indexedOf = (table: string) => rows.flatMap((row) => (row.table === table ? [row.column] : []));
    // Widest characters, which do not compress: what is not cut fits into no index.
    const long = Array.from({ length: 9_000 }, (_, n) => String.fromCodePoint(0x1f300 + ((n * 7_919) % 700))).join("");
    const whole: object = new Proxy({}, { get: () => long, has: () => true });
    const source = new Proxy({}, { get: (_, key) => (key === "payment_method" ? whole : long) });
    const uncut = mirrorResources.flatMap((resource) => {
      const columns = allColumns(resource);
      return indexedOf(resource.table)
        .filter((column) => column in columns)
        .map((column) => [column, columns[column]!.read(source, column, at(0))] as const)
        .filter(([, value]) => Buffer.byteLength(String(value ?? "")) > 2_000)
        .map(([column]) => `${resource.table}.${column}`);
    });
    expect(uncut).toEqual([]);
    // The others are ids, which are bounded where they are read, and what is computed from the columns above.
    const others = mirrorResources.flatMap((resource) =>
      indexedOf(resource.table).filter((column) => !(column in allColumns(resource))),
    );
    expect([...new Set(others)].toSorted()).toEqual(["awaits", "id", "order_id", "status"]);
  });
});

test.each(["22001", "54000"])(
  "an event that the database refuses with %s is dead at its first attempt",
  async (code) => {
    const heal = await refuseOrder(db, "refused", code);
    try {
      const seqs = [
        await storeEvent(db, "order.created", orderNamed("refused")),
        await storeEvent(db, "order.created", orderNamed("other")),
      ];
      await applyBatch(applyDeps(db), seqs);
      expect(await statesOf(seqs)).toEqual(["dead", "applied"]);
    } finally {
      await heal();
    }
  },
);

describe("the next batch", () => {
  const storeMany = (count: number, ageSeconds = 0) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        storeRow(db, { raw: Buffer.from(`{"n":${n}}`), receivedAgoSeconds: ageSeconds }),
      ),
    );
  /** As if another worker were at work; it has taken nothing of what is stored afterwards. */
  const whileAnotherLeads = (work: () => Promise<void>): Promise<void> =>
    db.transaction(async (trx) => {
      await claimNext(trx, 0, { rows: 1, bytes: 1, atLeast: 1, lateAfterMs: 0 });
      await work();
    });

  test("is all that waits, and the look says when there is more than a batch", async () => {
    await storeMany(501);
    expect(await applyNext(applyDeps(db), 0)).toMatchObject({ events: 500, isFull: true });
    expect(await applyNext(applyDeps(db), 0)).toMatchObject({ events: 1, isFull: false });
    expect(await applyNext(applyDeps(db), 0)).toMatchObject({ events: 0, leads: true });
  });

  test("is nothing while another worker is at work and few events wait", () =>
    whileAnotherLeads(async () => {
      const seqs = await storeMany(3, 1);
      expect(await applyNext(applyDeps(db), 0)).toMatchObject({ events: 0, leads: false });
      expect(new Set(await statesOf(seqs))).toEqual(new Set(["received"]));
    }));

  test.each([
    ["many events wait", 250, 0],
    ["one waits for too long", 1, 3],
  ])("is taken beside another worker when %s", (_when, count, ageSeconds) =>
    whileAnotherLeads(async () => {
      await storeMany(count, ageSeconds);
      expect(await applyNext(applyDeps(db), 0)).toMatchObject({ events: count, leads: false });
    }),
  );

  test("is taken beside another worker by one whose clock is behind, when one waits for too long", () =>
    whileAnotherLeads(async () => {
      await storeMany(1, 60);
      const clock = { now: () => new Date(Date.now() - 3_600_000) };
      const late = { ...applyDeps(db), clock, serviceClock: clock };
      expect(await applyNext(late, 0)).toMatchObject({ events: 1, leads: false });
    }));
});

describe("reads that events ask for", () => {
  const fetches = () => db("inbox.fetches").select("resource", "id", "reason", "not_before").orderBy("id");

  test("a thin object, and the event is applied", async () => {
    const seq = await storeEvent(db, "order.created", { id: "order-1" });
    await applyBatch(applyDeps(db), [seq]);
    expect(await fetches()).toEqual([{ resource: "order", id: "order-1", reason: "thin", not_before: null }]);
    expect(await progressOf(db, seq)).toMatchObject({ state: "applied", resource_id: "order-1" });
  });

  test("a tie, not before the service's clock is two seconds past it", async () => {
    const seqs = [
      await storeEvent(db, "order.created", sampleOrder({ description: "one" })),
      await storeEvent(db, "order.created", sampleOrder({ description: "two" })),
    ];
    for (const seq of seqs) await applyBatch(applyDeps(db), [seq]);
    expect(await fetches()).toEqual([{ resource: "order", id: "order-1", reason: "tie", not_before: new Date(at(2)) }]);
  });

  test("a dispute without its object: the list of disputes, and what it names", async () => {
    const seq = await storeEvent(db, "dispute.created", { id: "dp-1", order_id: "order-1" });
    await applyBatch(applyDeps(db), [seq]);
    expect(await fetches()).toMatchObject([
      { resource: "disputed-transactions", id: "*", reason: "dispute" },
      { resource: "order", id: "order-1", reason: "dispute" },
    ]);
    expect(await statesOf([seq])).toEqual(["applied"]);
  });

  test("an entry of an order without its state, and a customer's payment method", async () => {
    const transactions = [sampleEntry({ amount: undefined })];
    const seqs = [
      await storeEvent(db, "order.created", sampleOrder({ transactions })),
      await storeEvent(db, "customer.payment_method.created", {
        id: "pm",
        customer_id: "customer-1",
      }),
      await storeEvent(db, "customer.payment_method.created", { id: "pm", customer_id: null }),
    ];
    await applyBatch(applyDeps(db), seqs);
    expect(await fetches()).toMatchObject([
      { resource: "customer", id: "customer-1", reason: "thin" },
      { resource: "transaction", id: "sale-1", reason: "thin" },
    ]);
    expect(await statesOf(seqs)).toEqual(["applied", "applied", "dead"]);
  });
});

describe("a poisonous event", () => {
  let heal: () => Promise<void>;
  beforeEach(async () => {
    heal = await poisonOrder(db, "poison");
    return heal;
  });

  test("fails alone; its neighbours are applied in the same call", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 20; n++) {
      seqs.push(await storeEvent(db, "order.created", orderNamed(n === 13 ? "poison" : `order-${n}`)));
    }
    const deps = applyDeps(db);
    await applyBatch(deps, seqs);
    const states = await statesOf(seqs);
    expect(states.filter((state) => state === "applied")).toHaveLength(19);
    expect(await progressOf(db, seqs[13]!)).toMatchObject({
      state: "failed",
      attempts: 1,
      reason: "attempt 1: database error 23514",
    });
    expect(deps.logged(), "what the database quotes is somebody's data").not.toContain("jane@");
  });

  test("is tried again with growing pauses, and is dead after the last attempt", async () => {
    const seq = await storeEvent(db, "order.created", orderNamed("poison"));
    const deps = applyDeps(db);
    const pauses: number[] = [];
    for (let attempt = 1; attempt < eventRetryPolicy.maxAttempts; attempt++) {
      const startedMs = Date.now();
      // A job that comes twice counts no attempt before its time.
      for (let n = 0; n < 2; n++) await applyBatch(deps, [seq]);
      const row = await progressOf(db, seq);
      expect(row).toMatchObject({ state: "failed", attempts: attempt, settled_at: null });
      pauses.push((row.next_attempt_at?.getTime() ?? 0) - startedMs);
      await makeEventsDue(db);
    }
    pauses.forEach((pause, n) => {
      const full = Math.min(eventRetryPolicy.maxDelayMs, eventRetryPolicy.baseDelayMs * 2 ** n);
      expect(pause).toBeGreaterThanOrEqual(full / 2 - 50);
      expect(pause).toBeLessThan(full + 5_000);
    });
    await applyBatch(deps, [seq]);
    expect(await progressOf(db, seq)).toMatchObject({
      state: "dead",
      attempts: 16,
      next_attempt_at: null,
      resource_type: "order",
      resource_id: "poison",
    });
    await applyBatch(deps, [seq]);
    expect(await progressOf(db, seq)).toMatchObject({ state: "dead", attempts: 16 });
  });

  test("of which not even its failure can be written down holds up nobody", async () => {
    const seqs: number[] = [];
    for (const id of ["poison", "a", "b", "c"]) seqs.push(await storeEvent(db, "order.created", orderNamed(id)));
    await db.raw("alter table inbox.progress add constraint no_failure check (state <> 'failed')");
    try {
      await expect(applyBatch(applyDeps(db), seqs)).rejects.toThrow("no_failure");
    } finally {
      await db.raw("alter table inbox.progress drop constraint no_failure");
    }
    expect(await statesOf(seqs)).toEqual(["received", "applied", "applied", "applied"]);
  });

  test("is applied as soon as it can be", async () => {
    const seq = await storeEvent(db, "order.created", orderNamed("poison"));
    await applyBatch(applyDeps(db), [seq]);
    await heal();
    await makeEventsDue(db);
    await applyBatch(applyDeps(db), [seq]);
    expect(await progressOf(db, seq)).toMatchObject({
      state: "applied",
      reason: null,
      attempts: 2,
    });
  });
});

describe("an event that takes too long", () => {
  test.each([
    ["its statement is cut off", { statementMs: 150, transactionMs: 20_000 }, "57014"],
    ["its transaction is cut off", { statementMs: 20_000, transactionMs: 1_500 }, "25P04"],
  ])("fails alone, and its neighbours are applied: %s", async (_name, limits, code) => {
    const heal = await slowOrder(db, "slow", 5);
    try {
      const seqs: number[] = [];
      for (const id of ["a", "b", "slow", "c", "d"]) {
        seqs.push(await storeEvent(db, "order.created", orderNamed(id)));
      }
      const writerLimits = { ...defaultWriterLimits, ...limits };
      await applyBatch({ ...applyDeps(db), writerLimits }, seqs);
      expect(await statesOf(seqs)).toEqual(["applied", "applied", "failed", "applied", "applied"]);
      expect(await progressOf(db, seqs[2]!)).toMatchObject({
        attempts: 1,
        reason: `attempt 1: database error ${code}`,
      });
    } finally {
      await heal();
    }
  });

  test("is cut off by its statement, before the whole transaction is", () => {
    const { statementMs, lockMs, transactionMs } = defaultWriterLimits;
    expect(lockMs).toBeLessThan(statementMs);
    expect(statementMs).toBeLessThan(transactionMs);
    // As-of reports take what was recorded a minute ago for committed.
    expect(transactionMs).toBeLessThan(60_000);
  });
});

describe("what is not the event's fault is not counted against it", () => {
  test("a lost connection: the caller is told, the event waits as it was", async () => {
    const seqs = [
      await storeEvent(db, "order.created", orderNamed("order-1")),
      await storeEvent(db, "order.created", orderNamed("order-2")),
    ];
    const blocker = await db.transaction();
    await blocker.raw("lock table mirror.orders in exclusive mode");
    const applying = applyBatch(applyDeps(db), seqs);
    const refused = applying.then(
      () => "applied",
      () => "refused",
    );
    const [pid] = await untilWaiting(db);
    await db.raw("select pg_terminate_backend(?)", [pid ?? 0]);
    expect(await refused).toBe("refused");
    await blocker.rollback();
    expect(await progressOf(db, seqs[0]!)).toMatchObject({
      state: "received",
      attempts: 0,
      reason: null,
    });
    await applyBatch(applyDeps(db), seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "applied"]);
  });

  test("a deadlock with somebody else: the batch is repeated", async () => {
    const deps = applyDeps(db);
    const first = [
      await storeEvent(db, "order.created", orderNamed("a")),
      await storeEvent(db, "order.created", orderNamed("b")),
    ];
    await applyBatch(deps, first);
    const later = [
      await storeEvent(db, "order.refunded", orderNamed("a", { updated_at: at(5) })),
      await storeEvent(db, "order.refunded", orderNamed("b", { updated_at: at(5) })),
    ];
    const other = await db.transaction();
    await other.raw("select from mirror.orders where id = 'b' for update");
    const applying = applyBatch(deps, later);
    await untilWaiting(db);
    await other.raw("set local deadlock_timeout = '1min'");
    await other.raw("select from mirror.orders where id = 'a' for update");
    await other.commit();
    await applying;
    expect(await statesOf(later)).toEqual(["applied", "applied"]);
    expect(await progressOf(db, later[0]!)).toMatchObject({ attempts: 1 });
  });
});

describe("several workers at once", () => {
  test("on the same events: each is applied once", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 40; n++) seqs.push(await storeEvent(db, "order.created", orderNamed(`order-${n}`)));
    await Promise.all([seqs, [...seqs].reverse(), seqs].map((part) => applyBatch(applyDeps(db), part)));
    // What another worker held was left to it.
    await applyBatch(applyDeps(db), seqs);
    expect(new Set(await statesOf(seqs))).toEqual(new Set(["applied"]));
    expect((await progressOf(db, seqs[0]!)).attempts).toBe(1);
  });

  test.each([
    ["other states", at(6), (trx: Knex.Transaction) => trx.raw("select from mirror.orders where id = 'b' for update")],
    [
      "the same states",
      at(5),
      (trx: Knex.Transaction) => applySnapshots(trx, [shown("order", orderNamed("b", { updated_at: at(5) }))]),
    ],
  ])("in opposite orders on the same objects, with %s: no deadlock", async (_name, updated_at, block) => {
    const store = async (ids: readonly string[], fields: Record<string, unknown> = {}) => {
      const seqs: number[] = [];
      for (const id of ids) seqs.push(await storeEvent(db, "order.updated", orderNamed(id, fields)));
      return seqs;
    };
    const ids = ["a", "b", "c"];
    await applyBatch(applyDeps(db), await store(ids));
    const upwards = await store(ids, { updated_at: at(5) });
    const downwards = await store(ids.toReversed(), { updated_at });
    const before = await deadlocksOf(db);
    // Both wait until both have begun: one of them for the object in the middle.
    const blocker = await db.transaction();
    await block(blocker);
    const applying = [upwards, downwards].map((seqs) => applyBatch(applyDeps(db), seqs));
    await untilWaiting(db, 2);
    await blocker.rollback();
    await Promise.all(applying);
    expect(await statesOf([...upwards, ...downwards])).not.toContain("failed");
    expect(await deadlocksOf(db)).toBe(before);
  });

  test("on the same objects: the last state stays, with every state in the history", async () => {
    const random = seededRandom("several workers");
    const life = ["pending", "succeeded", "chargeback", "chargeback_dismissed", "chargeback_accepted"];
    const events: number[] = [];
    for (let n = 0; n < 60; n++) {
      const step = n % life.length;
      const id = `order-${Math.floor(n / life.length) % 4}`;
      const status = life[step] ?? "";
      const sale = {
        id: `sale-${id}`,
        status: status === "chargeback" ? status : "succeeded",
        updated_at: at(step),
      };
      const order = orderNamed(id, {
        status,
        updated_at: at(step),
        transactions: [sampleEntry(sale)],
      });
      events.push(await storeEvent(db, "order.updated", order));
      const itself = sampleTransaction({ ...sale, order_id: id });
      events.push(await storeEvent(db, "transaction.updated", itself));
    }
    const batches: number[][] = [[], [], [], []];
    for (const seq of events) batches[Math.floor(random() * 4)]!.push(seq);
    await Promise.all(batches.map((batch) => applyBatch(applyDeps(db), batch)));

    expect(new Set(await statesOf(events))).toEqual(new Set(["applied", "stale"]));
    const orders = await db("mirror.orders").orderBy("id").select("id", "status");
    expect(orders).toEqual([0, 1, 2, 3].map((n) => ({ id: `order-${n}`, status: "chargeback_accepted" })));
    const history = await db("mirror.versions").where("resource", "order");
    expect(history).toHaveLength(4 * life.length);
    const chargebacks = await db("mirror.chargebacks").select("state", "transaction_id", "opened_at");
    expect(chargebacks).toHaveLength(4);
    for (const chargeback of chargebacks) {
      expect(chargeback).toMatchObject({ state: "accepted", opened_at: new Date(at(2)) });
    }
  });
});
