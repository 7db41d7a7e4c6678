import fc from "fast-check";
import type { Knex } from "knex";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../../src/platform/log.ts";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import {
  type HeldLease,
  LeaseLostError,
  readRunLease,
  withRunLease,
} from "../../../src/parts/reconcile/runs/run-lease.ts";
import { eventually } from "../../support/eventually.ts";
import { pgbouncerInstalled, startPgBouncer } from "../../support/pgbouncer.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { rounds } from "../../support/rounds.ts";

const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });

beforeAll(async () => {
  await database.db.raw("create table written (n bigint generated always as identity, token text)");
});
beforeEach(async () => {
  await database.db("reconcile.leases").update({ token: 0, expires_at: null });
  await database.db("written").delete();
});

interface Holder extends HeldLease {
  /** Ends the work of the holder, and tells how that ended. */
  end(): Promise<unknown>;
}

/** Takes the lease and keeps it until the end is called for; null where it is not free. Looks once. */
async function hold(db: Knex = database.db, { lengthMs = 60_000 } = {}): Promise<Holder | null> {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  return new Promise((resolve) => {
    const outcome = withRunLease(
      { db, log },
      async (held) => {
        resolve({ ...held, end: () => (end(), outcome) });
        await ended;
      },
      // An aborted signal lets nobody wait for a lease that may end.
      { lengthMs, signal: AbortSignal.abort() },
    ).catch((error: unknown) => error);
    void outcome.then(() => resolve(null));
  });
}

async function holdSurely(options?: { lengthMs: number }): Promise<Holder> {
  const holder = await hold(database.db, options);
  if (holder === null) throw new Error("the lease was not free");
  return holder;
}

/** As if the holder had been stopped for longer than its lease. */
const expire = (db: Knex = database.db) =>
  db("reconcile.leases").update({ expires_at: db.raw("clock_timestamp() - interval '1 second'") });

/** Of another machine: whether it lives cannot be seen from here. */
const moveElsewhere = (db: Knex = database.db) =>
  db("reconcile.leases").update({ host: "elsewhere", pid: 7, process: null });

const write = (holder: HeldLease) =>
  holder.db.transaction((trx) => trx.raw("insert into written (token) select token from reconcile.leases"));

describe("two holders", () => {
  test("are never there at once, and an earlier one writes nothing, in whatever order they act", async () => {
    const { db } = database;
    const actor = fc.nat({ max: 2 });
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant("take" as const), actor }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("expire" as const), actor }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant("open" as const), actor }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant("commit" as const), actor }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("release" as const), actor }) },
    );
    const property = fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40, size: "max" }), async (steps) => {
      await db("reconcile.leases").update({ token: 0, expires_at: null });
      await db("written").delete();
      const holders = new Map<number, Holder>();
      const open = new Map<number, { commit(): Promise<void> }>();
      let current: number | null = null;
      let isFree = true;
      try {
        for (const { do: what, actor } of steps) {
          const holder = holders.get(actor);
          if (what === "take" && holder === undefined) {
            const taken = await hold();
            const isLocked = current !== null && open.has(current);
            expect(taken !== null).toBe(isFree && !isLocked);
            if (taken === null) continue;
            holders.set(actor, taken);
            [current, isFree] = [actor, false];
          } else if (what === "expire") {
            await expire();
            isFree = true;
          } else if (what === "open" && holder !== undefined && !open.has(actor)) {
            const transaction = await openTransaction(holder);
            expect(transaction !== null).toBe(actor === current);
            if (transaction !== null) open.set(actor, transaction);
          } else if (what === "commit") {
            await open.get(actor)?.commit();
            open.delete(actor);
          } else if (what === "release" && holder !== undefined && !open.has(actor)) {
            await holder.end();
            holders.delete(actor);
            if (actor === current) [current, isFree] = [null, true];
          }
        }
      } finally {
        for (const { commit } of open.values()) await commit();
        for (const { end } of holders.values()) await end();
      }
      // Each was written under the token that was then the current one, so they are in order.
      const tokens = await db("written").orderBy("n").pluck<string[]>("token");
      expect(tokens.map(Number)).toEqual(tokens.map(Number).sort((a, b) => a - b));
    });
    await fc.assert(property, { numRuns: rounds(8, 50) });
  });

  /** A holder's transaction after its proof, to be committed later; null where the holder is refused. */
  function openTransaction(holder: HeldLease): Promise<{ commit(): Promise<void> } | null> {
    return new Promise((resolve, reject) => {
      let commit = (): void => {};
      const mayCommit = new Promise<void>((done) => (commit = done));
      const ended = holder.db.transaction(async (trx) => {
        await trx.raw("insert into written (token) select token from reconcile.leases");
        resolve({ commit: () => (commit(), ended) });
        await mayCommit;
      });
      ended.catch((error: unknown) => (error instanceof LeaseLostError ? resolve(null) : reject(error as Error)));
    });
  }

  test("of which the earlier wakes up too late: its transaction is refused, its work told, its end changes nothing", async () => {
    const first = await holdSurely();
    await expire();
    const second = await holdSurely();
    await expect(write(first)).rejects.toThrow(/^Process \d+ on .* took over/);
    expect(first.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(first.signal.reason).toMatchObject({ exitCode: 4 });
    await first.end();
    await write(second);
    expect(await readRunLease(database.db)).toMatchObject({ isOver: false });
    expect(await database.db("written").pluck("token")).toEqual(["2"]);
    await second.end();
  });
});

describe("after a failover to a standby that lacked the last lease", () => {
  /** Takes the lease, and lets the database forget that it was taken. */
  async function takeAndForget(options?: { lengthMs: number }): Promise<Holder> {
    const before = await database.db("reconcile.leases").first<object>("*");
    const holder = await holdSurely(options);
    await database.db("reconcile.leases").update(before);
    return holder;
  }

  test("its holder writes and ends nothing, though the next one got the same token", async () => {
    const first = await takeAndForget();
    const second = await holdSurely();
    await expect(write(first)).rejects.toThrow(/^Process \d+ on .* took over/);
    await write(second);
    expect(await database.db("written").pluck("token")).toEqual(["1"]);
    await first.end();
    expect(await readRunLease(database.db)).toMatchObject({ isOver: false });
    await second.end();
  });

  test("its holder does not renew the lease of the next one, who got the same token", async () => {
    const first = await takeAndForget({ lengthMs: 2_000 });
    const second = await holdSurely();
    await eventually("the signal", () => first.signal.aborted);
    expect(first.signal.reason).toBeInstanceOf(LeaseLostError);
    await Promise.all([first.end(), second.end()]);
  });

  test("its holder is told so where nobody took the lease since, and writes nothing", async () => {
    const holder = await takeAndForget();
    await expect(write(holder)).rejects.toThrow(/^The database has lost the lease/);
    expect(await database.db("written").pluck("token")).toEqual([]);
    await holder.end();
  });
});

describe("a lease", () => {
  test("is renewed while its work goes on, and names its holder", async () => {
    const holder = await holdSurely({ lengthMs: 3_000 });
    const { until: first } = (await readRunLease(database.db)) ?? {};
    await eventually("two renewals", async () => {
      const { until } = (await readRunLease(database.db)) ?? {};
      return (until?.getTime() ?? 0) - (first?.getTime() ?? 0) > 900;
    });
    const beside = await withRunLease({ db: database.db, log }, async () => {});
    expect(beside).toMatchObject({ kind: "busy", holder: { pid: process.pid, isOver: false } });
    await holder.end();
    expect(await readRunLease(database.db)).toMatchObject({ until: null, isOver: true });
  });

  test("that ended while its holder was stopped goes on if nobody took it", async () => {
    const holder = await holdSurely({ lengthMs: 3_000 });
    await expire();
    await eventually("a renewal", async () => (await readRunLease(database.db))?.isOver === false);
    await write(holder);
    expect(holder.signal.aborted).toBe(false);
    await holder.end();
  });

  test("that was taken is noticed by the next renewal, before anything is written", async () => {
    const holder = await holdSurely({ lengthMs: 2_000 });
    await database.db("reconcile.leases").increment("token", 1);
    await eventually("the signal", () => holder.signal.aborted);
    expect(holder.signal.reason).toBeInstanceOf(LeaseLostError);
    await holder.end();
  });

  test("that cannot be renewed for its length is given up, and nothing more is written", async () => {
    const holder = await holdSurely({ lengthMs: 200 });
    await database.db.transaction(async (trx) => {
      await trx.raw("select from reconcile.leases for update");
      await eventually("the signal", () => holder.signal.aborted);
    });
    await expect(write(holder)).rejects.toThrow(/^The database did not answer for 0.2 s/);
    expect(await database.db("written").pluck("token")).toEqual([]);
    await holder.end();
  });

  test("is taken by nobody while a transaction of its holder is open, and renewed meanwhile", async () => {
    const holder = await holdSurely();
    await holder.db.transaction(async (trx) => {
      await expire();
      expect(await hold()).toBeNull();
      await trx.raw("insert into written (token) values ('open')");
    });
    const next = await holdSurely();
    expect(await database.db("written").pluck("token")).toEqual(["open"]);
    await Promise.all([holder.end(), next.end()]);
  });
});

describe("a holder that nobody here can see", () => {
  test("is waited for until its lease ends", async () => {
    const holder = await holdSurely();
    await moveElsewhere();
    await database.db("reconcile.leases").update({
      expires_at: database.db.raw("clock_timestamp() + interval '400 milliseconds'"),
    });
    const next = await withRunLease({ db: database.db, log }, () => readRunLease(database.db));
    expect(next).toMatchObject({ kind: "done", value: { pid: process.pid } });
    await holder.end();
  });

  test("is alive if it renews, and is named with its machine", async () => {
    const holder = await holdSurely({ lengthMs: 3_000 });
    await moveElsewhere();
    const beside = await withRunLease({ db: database.db, log }, async () => {});
    expect(beside).toMatchObject({ kind: "busy", holder: { host: "elsewhere", pid: 7 } });
    await holder.end();
  });
});

test("a process that ended on this machine is replaced at once", async () => {
  const holder = await holdSurely();
  const row = await database.db("reconcile.leases").first<{ process: string }>("process");
  // The same machine, and a process that started at another time.
  await database.db("reconcile.leases").update({ process: `${row.process}0` });
  const { until: before } = (await readRunLease(database.db)) ?? {};
  const next = await withRunLease({ db: database.db, log }, () => readRunLease(database.db));
  if (next.kind !== "done") throw new Error("busy");
  expect(next.value?.since.getTime()).toBeLessThan(before?.getTime() ?? 0);
  await holder.end();
});

describe.runIf(pgbouncerInstalled)("behind PgBouncer in transaction mode", () => {
  test("one holder at a time, whose earlier one writes nothing", async () => {
    const pooler = await startPgBouncer(database.directUrl, "transaction");
    const pools = ["first", "second"].map((applicationName) =>
      createDatabase({ url: pooler.url, poolMax: 3, applicationName }),
    );
    const [a, b] = pools as [Knex, Knex];
    try {
      for (let round = 0; round < 5; round++) {
        const first = await hold(a);
        if (first === null) throw new Error("the lease was not free");
        expect(await hold(b)).toBeNull();
        await write(first);
        await expire(b);
        const second = await hold(b);
        if (second === null) throw new Error("an ended lease was not free");
        await expect(write(first)).rejects.toBeInstanceOf(LeaseLostError);
        await write(second);
        await Promise.all([first.end(), second.end()]);
      }
      expect(await database.db("written").count("* as n")).toEqual([{ n: "10" }]);
    } finally {
      for (const pool of pools) await pool.destroy();
      await pooler.stop();
    }
  });
});
