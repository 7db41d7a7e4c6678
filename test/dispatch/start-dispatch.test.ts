import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Handler, RetryLater, defineHandler } from "../../src/parts/delivery/dispatch/define-handler.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import {
  type TestDispatch,
  applyAs,
  emptyDispatch,
  openDispatch,
  orderAt,
  untilHandled,
  untilRegistered,
} from "./dispatch-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";
import { rounds } from "../support/rounds.ts";

const database = useTestDatabase();
const opened: TestDispatch[] = [];
beforeEach(() => emptyDispatch(database.db));
afterEach(async () => {
  await Promise.all(opened.splice(0).map((dispatch) => dispatch.close()));
});

async function dispatchOf(handler: Handler, options: Parameters<typeof openDispatch>[2] = {}): Promise<TestDispatch> {
  const dispatch = openDispatch(database.url, [handler], options);
  opened.push(dispatch);
  await untilRegistered(database.db, handler.name);
  return dispatch;
}

const runs = () => database.db("dispatch.runs").orderBy("seq").select("id", "kind", "state", "attempts", "error");

test("a process that is stopped while it marks a change done holds up its handler alone", async () => {
  const { db } = database;
  const seen: string[] = [];
  const noting = (name: string) =>
    defineHandler({
      name,
      on: ["order.created"],
      run: ({ order }) => void seen.push(`${name} ${order.id}`),
    });
  const stopped = await db.transaction();
  await stopped.raw("select pg_advisory_xact_lock_shared(7256, hashtext('held-up'))");
  const dispatch = openDispatch(database.url, [noting("held-up"), noting("other")]);
  opened.push(dispatch);
  await untilRegistered(db, "held-up");
  await untilRegistered(db, "other");
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await eventually("the other one has it", () => seen.includes("other order-1"));
  expect(seen).toEqual(["other order-1"]);
  await stopped.commit();
  await eventually("it goes on", () => seen.includes("held-up order-1"));
});

describe("order and repetition", () => {
  const processes = 3;
  const objects = 6;

  test(`${processes} processes give each object's changes in their order, each until it is done, whatever fails`, async () => {
    const { db } = database;
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        await emptyDispatch(db);
        const random = seededRandom(seed);
        const begun = new Map<string, number>();
        const done = new Map<string, { seq: number; total: number }[]>();
        const handler = defineHandler({
          name: "observer",
          on: ["order.created", "order.paid", "order.updated"],
          attempts: 100,
          concurrency: 3,
          async run({ change, order }) {
            expect(begun.get(order.id) ?? 0, "one at a time for an object").toBe(0);
            begun.set(order.id, 1);
            await new Promise((resolve) => setImmediate(resolve));
            begun.set(order.id, 0);
            if (random() < 0.3) throw new Error("by chance");
            done.set(order.id, [...(done.get(order.id) ?? []), { seq: change.seq, total: order.total }]);
          },
        });
        const all = Array.from({ length: processes }, () => openDispatch(database.url, [handler]));
        try {
          await untilRegistered(db, "observer");
          for (let state = 1; state <= 8; state++) {
            for (let n = 0; n < objects; n++) {
              if (random() < 0.7) await applyAs(db, "event:1", orderAt(`order-${n}`, state));
            }
          }
          await untilHandled(db);
        } finally {
          await Promise.all(all.map((dispatch) => dispatch.close()));
        }
        const told = await db("feed.changes")
          .whereIn("kind", handler.on)
          .orderBy("seq")
          .select<{ id: string; seq: string; state_at: Date }[]>("id", "seq", "state_at");
        for (let n = 0; n < objects; n++) {
          const own = told.filter(({ id }) => id === `order-${n}`);
          const start = Date.UTC(2025, 2, 1, 12);
          expect(done.get(`order-${n}`) ?? []).toEqual(
            own.map(({ seq, state_at }) => ({
              seq: Number(seq),
              total: (state_at.getTime() - start) / 1_000,
            })),
          );
        }
        const [counts] = await db("dispatch.counts");
        expect(Number(counts.done)).toBe(told.length);
      }),
      { numRuns: rounds(1, 5, 20) },
    );
  });

  test("an object that fails holds up itself and nothing else", async () => {
    const { db } = database;
    const done: string[] = [];
    await dispatchOf(
      defineHandler({
        name: "picky",
        on: ["order.created", "order.updated"],
        attempts: 2,
        run({ order, change }) {
          if (order.id === "order-bad") throw new TypeError("never");
          done.push(`${order.id} ${change.kind}`);
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-bad", 1), orderAt("order-good", 1));
    await applyAs(db, "event:2", orderAt("order-bad", 2), orderAt("order-good", 2));
    await untilHandled(db, { dead: 2 });
    await eventually("it is dead", async () => (await runs())[0]?.state === "dead");
    expect(done).toEqual(["order-good order.created", "order-good order.updated"]);
    expect(await runs()).toEqual([
      { id: "order-bad", kind: "order.created", state: "dead", attempts: 2, error: "TypeError" },
      { id: "order-bad", kind: "order.updated", state: "waiting", attempts: 0, error: null },
    ]);
  });

  test("however many objects wait for their next attempt, others go on", async () => {
    const { db } = database;
    const done: string[] = [];
    await dispatchOf(
      defineHandler({
        name: "picky",
        on: ["order.created"],
        run: ({ order }) => void done.push(order.id),
      }),
    );
    await db.raw(
      `insert into dispatch.runs (handler, seq, resource, id, kind, change, is_first, attempts, due_at, failed_at)
       select 'picky', -n, 'order', 'bad-' || n, 'order.created', '{}', true, 5, now() + interval '1 hour', now()
       from generate_series(1, 2000) n`,
    );
    await applyAs(db, "event:1", orderAt("order-good", 1));
    await eventually("the other one is handled", () => done.length > 0);
    expect(done).toEqual(["order-good"]);
  });

  test("what writes to the database in its transaction does so exactly once, though it fails after it has written", async () => {
    const { db } = database;
    await db.raw("create schema if not exists own; create table if not exists own.seen (seq int)");
    await db.raw("truncate own.seen");
    const random = seededRandom("exactly once");
    await dispatchOf(
      defineHandler({
        name: "writer",
        on: ["order.created"],
        transactional: true,
        attempts: 100,
        async run({ change, db: trx }) {
          await trx("own.seen").insert({ seq: change.seq });
          if (random() < 0.5) throw new Error("after it has written");
        },
      }),
    );
    const ids = Array.from({ length: 12 }, (_, n) => orderAt(`order-${n}`, 1));
    await applyAs(db, "event:1", ...ids);
    await untilHandled(db);
    const created = await db("feed.changes").where({ kind: "order.created" }).orderBy("seq").pluck("seq");
    expect(created).toHaveLength(12);
    expect(await db("own.seen").orderBy("seq").pluck("seq")).toEqual(created.map(Number));
  });

  test("a change has the same key at each attempt, and another one has another", async () => {
    const { db } = database;
    const keys = new Map<number, string[]>();
    await dispatchOf(
      defineHandler({
        name: "keys",
        on: ["order.created"],
        run({ change: { seq }, idempotencyKey }) {
          keys.set(seq, [...(keys.get(seq) ?? []), idempotencyKey]);
          if (keys.get(seq)?.length === 1) throw new Error("once more");
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-1", 1), orderAt("order-2", 1));
    await untilHandled(db);
    const [[first, again] = [], [other] = []] = [...keys.values()];
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });
});

describe("deadlines and retries", () => {
  test("a handler that hangs is told so at its deadline, and fails; others go on meanwhile", async () => {
    const { db } = database;
    const aborted: string[] = [];
    const done: string[] = [];
    await dispatchOf(
      defineHandler({
        name: "hangs",
        on: ["order.created"],
        deadlineMs: 100,
        attempts: 1,
        run({ order, signal }) {
          if (order.id !== "order-hangs") return void done.push(order.id);
          signal.addEventListener("abort", () => aborted.push((signal.reason as Error).name));
          return new Promise<void>(() => {});
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-hangs", 1), orderAt("order-1", 1));
    await eventually("it is dead", async () => (await runs())[0]?.state === "dead");
    expect(aborted).toEqual(["DeadlineExceeded"]);
    expect(done).toEqual(["order-1"]);
    expect(await runs()).toMatchObject([{ id: "order-hangs", error: "DeadlineExceeded" }]);
  });

  test("a transaction whose statement hangs is rolled back", async () => {
    const { db } = database;
    await dispatchOf(
      defineHandler({
        name: "hangs-in-sql",
        on: ["order.created"],
        deadlineMs: 100,
        attempts: 1,
        transactional: true,
        async run({ db: trx }) {
          await trx.raw("select pg_sleep(600)");
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-1", 1));
    await eventually("it is dead", async () => (await runs())[0]?.state === "dead");
    expect(await runs()).toMatchObject([{ error: "DeadlineExceeded" }]);
  });

  test("RetryLater says when to try again, and counts as no attempt", async () => {
    const { db } = database;
    let calls = 0;
    await dispatchOf(
      defineHandler({
        name: "later",
        on: ["order.created"],
        attempts: 1,
        run() {
          calls += 1;
          if (calls < 3) throw new RetryLater(3_600_000);
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-1", 1));
    for (const call of [1, 2]) {
      const due = await eventually("it was put off", async () => {
        const row = await db("dispatch.runs")
          .whereNull("claimed_until")
          .where("token", call)
          .first("attempts", "error", db.raw("due_at > now() + interval '59 minutes' as is_later"));
        return row as object | undefined;
      });
      expect(due).toEqual({ attempts: 0, error: null, is_later: true });
      await db("dispatch.runs").update({ due_at: db.fn.now() });
    }
    await untilHandled(db);
    expect(calls).toBe(3);
    expect(await db("dispatch.counts").select("done", "failed", "postponed")).toEqual([
      { done: "1", failed: "0", postponed: "2" },
    ]);
  });

  test.each([
    ["no number of milliseconds", Number.NaN, 0],
    ["another time once too often", 1_000, 1_000],
  ])("RetryLater that asks for %s is a failed attempt", async (_, afterMs, postponed) => {
    const { db } = database;
    const asking = defineHandler({
      name: "asking",
      on: ["order.created"],
      attempts: 1,
      run() {
        throw new RetryLater(afterMs);
      },
    });
    await (await dispatchOf(asking)).close();
    opened.length = 0;
    const change = { seq: 0, resource: "order", id: "order-0", kind: "order.created" };
    await db("dispatch.runs").insert({
      ...change,
      handler: "asking",
      change: JSON.stringify({ ...change, recordedAt: new Date(), state: null }),
      is_first: true,
      postponed,
    });
    await applyAs(db, "event:1", orderAt("order-0", 1));
    await dispatchOf(asking);
    await eventually("it is dead", async () => (await runs())[0]?.state === "dead");
    expect((await runs())[0]).toMatchObject({ attempts: 1, error: "RetryLater" });
  });

  test("a change whose process was killed at its last attempt is dead, and not run again", async () => {
    const { db } = database;
    let calls = 0;
    const handler = defineHandler({
      name: "kills",
      on: ["order.created"],
      attempts: 2,
      run: () => void (calls += 1),
    });
    await (await dispatchOf(handler)).close();
    opened.length = 0;
    await applyAs(db, "event:1", orderAt("order-1", 1));
    const change = { seq: 1, resource: "order", id: "order-1", kind: "order.created" };
    await db("dispatch.runs").insert({
      ...change,
      seq: 0,
      handler: "kills",
      change: JSON.stringify({ ...change, recordedAt: new Date(), state: null }),
      is_first: true,
      attempts: 2,
      token: 2,
      claimed_until: db.raw("now() - interval '1 second'"),
    });
    await dispatchOf(handler);
    await eventually("it is dead", async () => (await runs())[0]?.state === "dead");
    expect(await runs()).toMatchObject([{ attempts: 3, error: "ProcessEndedWhileItRan" }, {}]);
    expect(calls).toBe(0);
  });

  test("an object that the mirror has not seen itself yet is waited for", async () => {
    const { db } = database;
    const seen: string[] = [];
    const handler = defineHandler({
      name: "early",
      on: ["order.refunded"],
      attempts: 100,
      run: ({ order, change }) => void seen.push(`${order.id} ${order.status} ${change.amount}`),
    });
    await dispatchOf(handler);
    await db("feed.changes").insert({
      seq: db.raw("nextval('feed.change_numbers')"),
      resource: "order",
      id: "order-1",
      kind: "order.refunded",
      amount: 300,
      cause: "event:1",
    });
    await eventually("it was tried", async () => (await runs())[0]?.error === "ObjectNotSeen");
    await applyAs(db, "fetch", orderAt("order-1", 1, { status: "refunded" }));
    await untilHandled(db);
    expect(seen).toEqual(["order-1 refunded 300"]);
  });
});

describe("where a handler begins", () => {
  const collector = (options: object) => {
    const seen: string[] = [];
    const handler = defineHandler({
      name: "collector",
      on: ["order.created"],
      ...options,
      run: ({ order }) => void seen.push(order.id),
    });
    return { seen, handler };
  };

  test("a new one begins now, and after a pause of its process where it was", async () => {
    const { db } = database;
    await applyAs(db, "event:1", orderAt("order-old", 1));
    const { seen, handler } = collector({});
    const first = await dispatchOf(handler);
    await applyAs(db, "event:2", orderAt("order-1", 1));
    await untilHandled(db);
    await first.close();
    opened.length = 0;
    await applyAs(db, "event:3", orderAt("order-2", 1));
    await dispatchOf(handler);
    await untilHandled(db);
    expect(seen).toEqual(["order-1", "order-2"]);
    expect(await db("feed.consumers").pluck("name")).toEqual(["handler:collector"]);
  });

  test("at the beginning, it sees what events have brought, and imports only if it asks", async () => {
    const { db } = database;
    await applyAs(db, "import", orderAt("order-imported", 1));
    await applyAs(db, "event:1", orderAt("order-1", 1));
    const { seen, handler } = collector({ from: "beginning" });
    await dispatchOf(handler);
    await untilHandled(db);
    expect(seen).toEqual(["order-1"]);
    await emptyDispatchTables();
    const all = collector({ name: "importer", from: "beginning", includeImport: true });
    await dispatchOf(all.handler);
    await untilHandled(db);
    expect(all.seen.toSorted()).toEqual(["order-1", "order-imported"]);
  });

  test("from a time on, it sees nothing that was recorded before", async () => {
    const { db } = database;
    await applyAs(db, "event:1", orderAt("order-before", 1));
    const { rows } = await db.raw<{ rows: [{ now: Date }] }>("select clock_timestamp() as now");
    const from = new Date(rows[0].now.getTime() + 1);
    await eventually("the clock has moved", async () => {
      const later = await db.raw<{ rows: [{ now: Date }] }>("select clock_timestamp() as now");
      return later.rows[0].now > from;
    });
    await applyAs(db, "event:2", orderAt("order-after", 1));
    const { seen, handler } = collector({ from: from.toISOString() });
    await dispatchOf(handler);
    await untilHandled(db);
    expect(seen).toEqual(["order-after"]);
  });

  const emptyDispatchTables = async () => {
    await Promise.all(opened.splice(0).map((dispatch) => dispatch.close()));
    await emptyTables(database.db, ["dispatch.handlers", "dispatch.runs"]);
  };
});

describe("a handler whose runs all fail", () => {
  test("is paused as one incident, tries one run at a time, and resumes with the first that is done", async () => {
    const { db } = database;
    let isBroken = true;
    const done = new Set<string>();
    await dispatchOf(
      defineHandler({
        name: "broken",
        on: ["order.created"],
        run({ order }) {
          if (isBroken) throw new Error("the mail server is away");
          done.add(order.id);
        },
      }),
      { retry: { baseDelayMs: 600_000, maxDelayMs: 600_000 } },
    );
    const ids = Array.from({ length: 40 }, (_, n) => `order-${n}`);
    await applyAs(db, "event:1", ...ids.map((id) => orderAt(id, 1)));
    const paused = await eventually("it is paused", () =>
      db("dispatch.handlers").whereNotNull("paused_at").first("paused_by", "pause_reason"),
    );
    expect(paused).toEqual({
      paused_by: "failures",
      pause_reason: "It failed for 20 objects in a row, the last time with: Error.",
    });
    await eventually("those that ran have failed", async () => {
      const claimed = await db("dispatch.runs").where("claimed_until", ">", db.fn.now());
      return claimed.length === 0;
    });
    const failed = async () => Number((await db("dispatch.counts").first("failed")).failed);
    const before = await failed();
    expect(before).toBeLessThan(40);

    const probe = () => db("dispatch.handlers").update({ probe_at: db.fn.now() });
    const tokens = async () => Number((await db("dispatch.runs").sum({ n: "token" }).first())?.["n"]);
    const tried = await tokens();
    await probe();
    await eventually("one is tried", async () => (await tokens()) === tried + 1);
    await eventually("it was put off", async () => {
      const claimed = await db("dispatch.runs").whereNotNull("claimed_until");
      return claimed.length === 0;
    });
    expect(await failed(), "what is tried while it is paused counts as no failure").toBe(before);

    isBroken = false;
    await probe();
    await eventually("it resumed", () => db("dispatch.handlers").whereNull("paused_at").first("name"));
    await db("dispatch.runs").update({ due_at: db.fn.now() });
    await untilHandled(db);
    expect(done).toEqual(new Set(ids));
  });

  test("is not paused while any is done", async () => {
    const { db } = database;
    await dispatchOf(
      defineHandler({
        name: "mixed",
        on: ["order.created"],
        attempts: 1,
        concurrency: 1,
        run({ order }) {
          if (Number(order.id.slice(6)) % 10 !== 0) throw new Error("nine of ten");
        },
      }),
    );
    const states = Array.from({ length: 50 }, (_, n) => orderAt(`order-${n}`, 1));
    await applyAs(db, "event:1", ...states);
    await untilHandled(db, { dead: 45 });
    await eventually("all were tried", async () => (await runs()).every(({ state }) => state === "dead"));
    expect(await db("dispatch.handlers").pluck("paused_by")).toEqual([null]);
  });
});

test("a closed dispatch has waited for the handlers that ran, and marked their changes done", async () => {
  const { db } = database;
  let isDone = false;
  let began = (): void => {};
  const begun = new Promise<void>((resolve) => (began = resolve));
  const dispatch = await dispatchOf(
    defineHandler({
      name: "slow",
      on: ["order.created"],
      async run() {
        began();
        await new Promise((resolve) => setTimeout(resolve, 50));
        isDone = true;
      },
    }),
  );
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await begun;
  await dispatch.close();
  opened.length = 0;
  expect(isDone).toBe(true);
  expect(await runs()).toEqual([]);
});

test.each([false, true])(
  "one that comes back after another process took its change marks nothing done (transactional: %s)",
  async (transactional) => {
    const { db } = database;
    await db.raw("create schema if not exists own; create table if not exists own.late (seq int)");
    await db.raw("truncate own.late");
    let [began, goOn] = [(): void => {}, (): void => {}];
    const begun = new Promise<void>((resolve) => (began = resolve));
    const released = new Promise<void>((resolve) => (goOn = resolve));
    const dispatch = await dispatchOf(
      defineHandler({
        name: "late",
        on: ["order.created"],
        transactional,
        async run({ change, db: given }) {
          began();
          await released;
          if (transactional) await given("own.late").insert({ seq: change.seq });
        },
      }),
    );
    await applyAs(db, "event:1", orderAt("order-1", 1));
    await begun;
    // As a claim after the end of the lease.
    const later = db.raw("now() + interval '1 hour'");
    await db("dispatch.runs").update({
      token: 2,
      attempts: 2,
      due_at: later,
      claimed_until: later,
    });
    goOn();
    await dispatch.close();
    opened.length = 0;
    expect(await runs()).toMatchObject([{ state: "waiting", attempts: 2, error: null }]);
    expect(await db("own.late")).toEqual([]);
  },
);
