import type { Knex } from "knex";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  type CompletedEvent,
  claimEvents,
  claimNext,
  completeEvents,
  isAnyUnapplied,
  postponeEvent,
} from "../../src/core/inbox/claim.ts";
import { deferLocked } from "../../src/core/inbox/locked-events.ts";
import { emptyInbox, progressOf, storeRow } from "./stored-events.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { statementsOf } from "../support/statements-of.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const enough = 1_000_000;
/** Any number of events is taken beside another transaction. */
const any = { atLeast: 1, lateAfterMs: 60_000 };
const claimUpTo = (seqs: number[], bytes: number) =>
  database.db.transaction((trx) => claimEvents(trx, seqs, { bytes }));
const claim = async (seqs: number[]) => (await claimUpTo(seqs, enough)).events;

const settlement = (seq: number, given: Partial<CompletedEvent> = {}): CompletedEvent => ({
  seq,
  state: "applied",
  reason: null,
  resourceType: "order",
  resourceId: "ord_1",
  ...given,
});

describe("claiming", () => {
  test("gives the bytes of unapplied events in the order of their arrival", async () => {
    const raw = Buffer.from([0, 0xff, 0x5c]);
    const first = await storeRow(database.db, { eventId: "evt_1", raw });
    const second = await storeRow(database.db, {
      eventId: "evt_2",
      state: "failed",
      attempts: 4,
      dueInSeconds: -1,
    });
    expect(await claim([second, first, second])).toMatchObject([
      { seq: first, raw, attempts: 0 },
      { seq: second, attempts: 4 },
    ]);
  });

  test.each(["applied", "stale", "ignored", "dead"] as const)("leaves an event that is %s alone", async (state) => {
    expect(await claim([await storeRow(database.db, { state })])).toEqual([]);
  });

  test("leaves an event that failed alone until it is due, however often a job names it", async () => {
    const early = await storeRow(database.db, { state: "failed", dueInSeconds: 60, attempts: 1 });
    const due = await storeRow(database.db, { state: "failed", dueInSeconds: -1, attempts: 1 });
    expect((await claim([early, due])).map(({ seq }) => seq)).toEqual([due]);
  });

  test("knows nothing of rows that are not there, or without bytes", async () => {
    const pruned = await storeRow(database.db, { raw: null });
    expect(await claim([pruned, 999_999_999])).toEqual([]);
    expect(await claim([])).toEqual([]);
  });

  test("reads bodies up to the limit, but at least one, and names those that are left", async () => {
    const raw = Buffer.alloc(100, "x");
    const seqs: number[] = [];
    for (let n = 0; n < 4; n++) seqs.push(await storeRow(database.db, { raw }));
    const seen = async (maxBytes: number) => {
      const { events, left } = await claimUpTo(seqs, maxBytes);
      return [events.map(({ seq }) => seq), left];
    };
    expect(await seen(1)).toEqual([seqs.slice(0, 1), seqs.slice(1)]);
    expect(await seen(200)).toEqual([seqs.slice(0, 2), seqs.slice(2)]);
    expect(await seen(201)).toEqual([seqs.slice(0, 3), seqs.slice(3)]);
    expect(await seen(400)).toEqual([seqs, []]);
  });

  test("passes over rows that another worker holds, and gets them when that one gives up", async () => {
    const [mine, theirs] = [await storeRow(database.db), await storeRow(database.db)];
    const other = await database.db.transaction();
    expect((await claimEvents(other, [theirs], { bytes: enough })).events).toHaveLength(1);
    expect((await claim([mine, theirs])).map(({ seq }) => seq)).toEqual([mine]);
    await other.rollback();
    expect((await claim([mine, theirs])).map(({ seq }) => seq)).toEqual([mine, theirs]);
  });

  test("many workers at once share a batch without an overlap", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 30; n++) seqs.push(await storeRow(database.db));
    const claimed = await Promise.all(
      Array.from({ length: 4 }, () =>
        database.db.transaction(async (trx) => {
          const { events } = await claimEvents(trx, seqs, { bytes: enough });
          await completeEvents(
            trx,
            events.map(({ seq }) => settlement(seq)),
          );
          return events.map(({ seq }) => seq);
        }),
      ),
    );
    expect(claimed.flat().sort((a, b) => a - b)).toEqual(seqs);
  });
});

test.each([
  ["these", (trx: Knex.Transaction, seq: number) => claimEvents(trx, [seq], { bytes: enough, idleMs: 50 })],
  ["the next", (trx: Knex.Transaction) => claimNext(trx, 0, { ...any, rows: 1, bytes: enough, idleMs: 50 })],
])("a worker that stops after it claimed %s events keeps them for a while only", async (_, take) => {
  const seq = await storeRow(database.db);
  const stopped = await database.db.transaction();
  onTestFinished(async () => void (await stopped.rollback().catch(() => {})));
  expect((await take(stopped, seq)).events.map((each) => each.seq)).toEqual([seq]);
  const others = () => database.db.transaction((trx) => claimNext(trx, 0, { ...any, rows: 1, bytes: 1 }));
  const taken = await eventually("another worker has it", async () => {
    const { leads, events } = await others();
    return leads && events.length > 0 && events;
  });
  expect(taken.map((each) => each.seq)).toEqual([seq]);
});

describe("claiming the next", () => {
  const limits = { ...any, rows: 3, bytes: enough };
  const numbersOf = ({ events }: { events: readonly { seq: number }[] }) => events.map(({ seq }) => seq);

  test("gives the oldest that nobody has tried, above a number, and says that nobody else is at work", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 5; n++) seqs.push(await storeRow(database.db));
    await storeRow(database.db, { state: "failed", dueInSeconds: -1 });
    await storeRow(database.db, { state: "applied" });
    const next = (after: number) => database.db.transaction((trx) => claimNext(trx, after, limits));
    expect(numbersOf(await next(0))).toEqual(seqs.slice(0, 3));
    expect(numbersOf(await next(seqs[2]!))).toEqual(seqs.slice(3));
    expect(await next(seqs[4]!)).toEqual({ leads: true, events: [], left: [] });
    expect(await isAnyUnapplied(database.db, seqs[3]!)).toBe(true);
    expect(await isAnyUnapplied(database.db, seqs[4]!)).toBe(false);
  });

  test("while another is at work, gives what that one has not taken and says so", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 4; n++) seqs.push(await storeRow(database.db));
    const other = await database.db.transaction();
    try {
      const first = await claimNext(other, 0, limits);
      expect([first.leads, numbersOf(first)]).toEqual([true, seqs.slice(0, 3)]);
      const second = await database.db.transaction((trx) => claimNext(trx, 0, limits));
      expect([second.leads, numbersOf(second)]).toEqual([false, seqs.slice(3)]);
    } finally {
      await other.rollback();
    }
    const third = await database.db.transaction((trx) => claimNext(trx, 0, limits));
    expect([third.leads, numbersOf(third)]).toEqual([true, seqs.slice(0, 3)]);
  });

  test("takes one that is committed late, with a lower number than others", async () => {
    const early = await database.db.transaction();
    const seq = await storeRow(early);
    const later = await storeRow(database.db);
    const next = () => database.db.transaction((trx) => claimNext(trx, 0, limits));
    expect(numbersOf(await next())).toEqual([later]);
    await early.commit();
    expect(numbersOf(await next())).toEqual([seq, later]);
  });
});

test("an event that is put off has no attempt counted, and is due again afterwards", async () => {
  const seq = await storeRow(database.db, { attempts: 2 });
  await deferLocked(database.db, [{ seq, holder: null }], { delayMs: 60_000 });
  expect(await progressOf(database.db, seq)).toMatchObject({ state: "failed", attempts: 2 });
  expect(await claim([seq])).toEqual([]);
  await deferLocked(database.db, [{ seq, holder: null }], { delayMs: 0 });
  expect(await claim([seq])).toHaveLength(1);
});

describe("settling", () => {
  test("marks each event with its own end, in one go", async () => {
    const states = ["applied", "stale", "ignored", "dead"] as const;
    const seqs: number[] = [];
    for (const _ of states) seqs.push(await storeRow(database.db, { state: "failed", attempts: 2, dueInSeconds: 5 }));
    await database.db.transaction((trx) =>
      completeEvents(
        trx,
        states.map((state, n) =>
          settlement(seqs[n]!, {
            state,
            reason: `because ${n}`,
            resourceId: n === 0 ? null : `ord_${n}`,
          }),
        ),
      ),
    );
    for (const [n, state] of states.entries()) {
      const row = await progressOf(database.db, seqs[n]!);
      expect(row).toMatchObject({
        state,
        attempts: 3,
        reason: `because ${n}`,
        next_attempt_at: null,
        resource_type: "order",
        resource_id: n === 0 ? null : `ord_${n}`,
      });
      expect(row.settled_at).toBeInstanceOf(Date);
    }
  });

  test("copies each event's type and times, to the microsecond", async () => {
    const seqs = [await storeRow(database.db), await storeRow(database.db)];
    await database.db.raw(
      `update inbox.receipts
       set type = 'order.succeeded', event_created_at = '2025-03-01T10:00:00.123456Z', received_at = '2025-03-01T10:00:01.654321Z'
       where seq = ?`,
      [seqs[0]!],
    );
    await database.db.raw("update inbox.receipts set type = null, event_created_at = null where seq = ?", [seqs[1]!]);
    await database.db.transaction((trx) =>
      completeEvents(
        trx,
        seqs.map((seq) => settlement(seq)),
      ),
    );
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      `select event_type, event_at = r.event_created_at as is_event_at, arrived_at = r.received_at as is_arrived_at
       from inbox.progress p join inbox.receipts r using (seq) order by seq`,
    );
    expect(rows).toEqual([
      { event_type: "order.succeeded", is_event_at: true, is_arrived_at: true },
      { event_type: null, is_event_at: null, is_arrived_at: true },
    ]);
  });

  test("nothing to settle is no statement at all", async () => {
    await database.db.transaction(async (trx) => {
      expect(await statementsOf(trx, () => completeEvents(trx, []))).toEqual([]);
    });
  });

  test("goes away with the transaction that changed the mirror", async () => {
    const seq = await storeRow(database.db);
    await expect(
      database.db.transaction(async (trx) => {
        await completeEvents(trx, [settlement(seq)]);
        throw new Error("the mirror refused");
      }),
    ).rejects.toThrow("the mirror refused");
    expect(await progressOf(database.db, seq)).toMatchObject({ state: "received", attempts: 0 });
  });
});

describe("postponing", () => {
  test("an event that failed waits for its next attempt", async () => {
    const seq = await storeRow(database.db, { attempts: 1 });
    await postponeEvent(database.db, {
      seq,
      attempt: 2,
      reason: "attempt 2: TypeError",
      delayMs: 90_500,
    });
    const row = await progressOf(database.db, seq);
    expect(row).toMatchObject({
      state: "failed",
      attempts: 2,
      reason: "attempt 2: TypeError",
      settled_at: null,
    });
    const { rows } = await database.db.raw<{ rows: { seconds: number }[] }>(
      "select extract(epoch from next_attempt_at - now())::float8 as seconds from inbox.progress",
    );
    expect(rows[0]?.seconds).toBeGreaterThan(80);
    expect(rows[0]?.seconds).toBeLessThan(90.5);
  });

  test("an event that failed for the last time is dead and has no next attempt", async () => {
    const seq = await storeRow(database.db, { state: "failed", attempts: 15, dueInSeconds: -1 });
    await postponeEvent(database.db, { seq, attempt: 16, reason: "attempt 16", delayMs: null });
    const row = await progressOf(database.db, seq);
    expect(row).toMatchObject({ state: "dead", attempts: 16, next_attempt_at: null });
    expect(row.settled_at).toBeInstanceOf(Date);
  });

  test.each(["applied", "stale", "ignored", "dead"] as const)(
    "does not reopen an event that is %s already",
    async (state) => {
      const seq = await storeRow(database.db, { state });
      const late = { seq, attempt: 1, reason: "late", delayMs: 1 };
      expect(await postponeEvent(database.db, late)).toBe(false);
      expect(await progressOf(database.db, seq)).toMatchObject({ state, reason: null });
    },
  );

  test("two workers that failed at the same attempt count it once", async () => {
    const seq = await storeRow(database.db);
    const failed = { seq, attempt: 1, reason: "attempt 1", delayMs: null };
    expect(await postponeEvent(database.db, { ...failed, delayMs: 60_000 })).toBe(true);
    expect(await postponeEvent(database.db, failed)).toBe(false);
    expect(await progressOf(database.db, seq)).toMatchObject({ state: "failed", attempts: 1 });
  });
});
