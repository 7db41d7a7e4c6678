import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sweepAlerts } from "../src/parts/alerts/run-alerts.ts";
import type { ServiceClient } from "../src/core/client/service-client.ts";
import { attemptRun } from "../src/parts/delivery/dispatch/attempt.ts";
import { type Handler, defineHandler } from "../src/parts/delivery/dispatch/define-handler.ts";
import { planRuns, registerRecipient } from "../src/parts/delivery/dispatch/plan-runs.ts";
import type { Source } from "../src/parts/delivery/dispatch/recipient.ts";
import { type EndpointTools, withCallLock } from "../src/parts/endpoint/obtain-secret.ts";
import { claimEvents, claimNext } from "../src/core/inbox/claim.ts";
import { sweepQuestions } from "./alerts/sweep-questions.ts";
import { aloneInRestore } from "../src/app/open-restore.ts";
import { type WriterLimits, beginWriting } from "../src/core/mirror/write/apply.ts";
import { createLog } from "../src/platform/log.ts";
import { type NumberedTables, partitionSteps } from "../src/platform/postgres/number-partitions.ts";
import { createDatabase, createPool } from "../src/platform/postgres/pool.ts";
import { inTransaction, liftLimits } from "../src/platform/postgres/transactions.ts";
import { withRunLease } from "../src/parts/reconcile/runs/run-lease.ts";
import { programmesNear } from "../src/parts/reports/catalogue/network-monitor/programmes-near.ts";
import { findLockedEvents } from "../src/core/worker/locked-events.ts";
import { previewEvent } from "../src/core/worker/preview-event.ts";
import { testAlertContext } from "./alerts/test-alert-context.ts";
import { storeRow } from "./inbox/stored-events.ts";
import type { PlainServer } from "./support/debian-postgres.ts";
import { eventually } from "./support/eventually.ts";
import { sampleOrder } from "./mirror/samples.ts";
import { migratedOnEachVersion } from "./support/postgres-versions.ts";
import { withServer } from "./support/server-commands.ts";
import { applyDeps, storeEvent } from "./worker/worker-stand.ts";

/** Each limit of PostgreSQL that could stand in for ours, or end what ours lets live. */
const settingNames = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
];

/** What an operator may have set for the role and the database. */
const settings = {
  "limits of ten minutes": () => "10min",
  "no limits": () => "0",
  "limits of a second": (name: string) => (name === "lock_timeout" ? "0" : "1s"),
} as const;

const log = createLog({ level: "silent", name: "test" });
const quick = { statementMs: 300, lockMs: 250, transactionMs: 300 };
const unlimited: WriterLimits = { statementMs: 30_000, lockMs: 30_000, transactionMs: 30_000 };

/** Each limit of a writer, how it is reached, and the code with which the server says so. A new one needs an entry. */
const writerLimits: Record<
  keyof WriterLimits | "idle",
  {
    given: Partial<WriterLimits>;
    reach: (trx: Knex.Transaction) => Promise<unknown>;
    /** Null: the session is gone, and its driver says so in its own words. */
    code: string | null;
  }
> = {
  statementMs: {
    given: { statementMs: 100 },
    reach: (trx) => trx.raw("select pg_sleep(20)"),
    code: "57014",
  },
  lockMs: {
    given: { lockMs: 100 },
    reach: (trx) => trx.raw("lock table mirror.orders in access exclusive mode"),
    code: "55P03",
  },
  idle: {
    given: { transactionMs: 400 },
    reach: () => sleep(800),
    code: null,
  },
  transactionMs: {
    given: { transactionMs: 400 },
    reach: (trx) => trx.raw("select pg_sleep(20)"),
    code: "25P04",
  },
};

describe.each(migratedOnEachVersion)("on %s", (_name, start) => {
  let server: PlainServer;
  let version: number;
  beforeAll(async () => {
    server = await start();
    version = await withServer(server.url, async (client) => {
      const { rows } = await client.query<{ n: number }>("select current_setting('server_version_num')::int as n");
      return rows[0]?.n ?? 0;
    });
  });
  afterAll(() => server.destroy());

  describe.each(Object.entries(settings))("with %s of role and database", (_setting, valueOf) => {
    let db: Knex;
    let other: Knex;
    let pool: Pool;
    const isShort = valueOf("statement_timeout") === "1s";

    beforeAll(async () => {
      await withServer(server.url, async (client) => {
        const { rows } = await client.query<{ db: string; role: string }>(
          "select current_database() as db, current_user as role",
        );
        const [{ db: name, role }] = rows as [{ db: string; role: string }];
        // Before 17 there is no transaction_timeout.
        for (const setting of settingNames.slice(0, version < 170_000 ? 3 : 4)) {
          const value = `set ${setting} = '${valueOf(setting)}'`;
          await client.query(`alter database ${name} ${value}`);
          await client.query(`alter role ${role} in database ${name} ${value}`);
        }
      });
      const made = { url: server.url, applicationName: "tallyhook test" };
      db = createDatabase({ ...made, poolMax: 4 });
      // It stands for others, whom no limit of the test's is to end.
      other = createDatabase({ ...made, poolMax: 1 });
      pool = createPool({ ...made, max: 1, statementTimeoutMs: 200 });
    });
    afterAll(async () => {
      await Promise.all([db.destroy(), other.destroy(), pool.end()]);
    });

    const blocking = async <T>(statement: string, work: () => Promise<T>): Promise<T> => {
      const trx = await other.transaction();
      try {
        await liftLimits(trx);
        await trx.raw(statement);
        return await work();
      } finally {
        await trx.rollback();
      }
    };

    const write = (given: Partial<WriterLimits>, work: (trx: Knex.Transaction) => unknown) =>
      inTransaction(db, async (trx) => {
        await beginWriting(trx, { ...unlimited, ...given });
        await work(trx);
        // A session that was ended while it was idle says so at the next statement.
        await trx.raw("select 1");
      });

    test.each(Object.entries(writerLimits))("a writer is ended by %s", async (name, { given, reach, code }) => {
      // Older servers have no such limit; docs/operations.md says what that means.
      if (name === "transactionMs" && version < 170_000) return;
      await blocking("lock table mirror.orders in access exclusive mode", () =>
        expect(write(given, reach)).rejects.toMatchObject(code === null ? {} : { code }),
      );
    });

    test("a writer does not gain time by beginning twice", async () => {
      if (version < 170_000) return;
      const given = { transactionMs: 1_000 };
      const again = async (trx: Knex.Transaction) => {
        await trx.raw("select pg_sleep(0.6)");
        await beginWriting(trx, { ...unlimited, ...given });
        await trx.raw("select pg_sleep(0.7)");
      };
      await expect(write(given, again)).rejects.toMatchObject({ code: "25P04" });
    });

    test.runIf(isShort)("what has limits of its own, or none, outlives shorter ones", async () => {
      const idle = defineHandler({
        name: "idle",
        on: ["order.created"],
        transactional: true,
        run: () => sleep(1_300),
      });
      const lockForCall = () => withCallLock({ db } as EndpointTools, () => sleep(1_500));
      const results = await Promise.allSettled([
        write({}, (trx) => trx.raw("select pg_sleep(1.3)")),
        attempt(idle),
        lockForCall(),
        aloneInRestore(server.url, () => sleep(1_500)),
        sleep(1_300).then(lockForCall),
      ]);
      const second = results.pop();
      expect(results.map(({ status }) => status)).toEqual(results.map(() => "fulfilled"));
      // The first call still has the lock.
      expect(second).toMatchObject({
        reason: { message: expect.stringContaining("is registering") as string },
      });
    });

    test("what must not wait for a locked table does not", async () => {
      const seq = await storeEvent(db, "order.created", sampleOrder());
      const upkeep = partitionSteps({ db, log }, { schema: "inbox", lock: 1 } as NumberedTables);
      const unseen = () => Promise.resolve(() => Promise.resolve(null));
      await blocking("lock table mirror.orders in access exclusive mode", async () => {
        const [locked, preview] = await Promise.all([
          findLockedEvents(applyDeps(db), [seq]),
          previewEvent(applyDeps(db), seq, unseen),
          upkeep(async (trx) => void (await trx.raw("lock table mirror.orders"))),
        ]);
        expect([locked, preview]).toEqual([[{ seq, holder: null }], { kind: "busy" }]);
      });
    });

    test("a pool's own limit of a statement acts", () =>
      expect(pool.query("select pg_sleep(20)")).rejects.toMatchObject({ code: "57014" }));

    test("a worker that is stopped keeps the events that it claimed no longer than that", async () => {
      const seq = await storeRow(db);
      const stopped = await db.transaction();
      onTestFinished(async () => void (await stopped.rollback().catch(() => {})));
      const claimed = await claimEvents(stopped, [seq], { bytes: 100, idleMs: 300 });
      expect(claimed.events).toHaveLength(1);
      const any = { rows: 1, bytes: 1_000, atLeast: 1, lateAfterMs: 0 };
      // Events of earlier cases wait before it.
      const taken = await eventually("another worker has it", () =>
        inTransaction(other, async (trx) => {
          const { events } = await claimNext(trx, seq - 1, any);
          return events.length > 0 && events;
        }),
      );
      expect(taken.map((event) => event.seq)).toEqual([seq]);
    });

    /** What one process does at a time: `ask` is asked within its transaction. */
    const turns: Record<string, (ask: () => Promise<void>) => Promise<unknown>> = {
      "plans a recipient's runs": async (ask) => {
        const nothing = { rows: [], position: 0, hasMore: false };
        const source: Source = {
          name: "changes",
          readableUntil: () => Promise.resolve(0),
          positionAt: () => Promise.resolve(0),
          read: () => ask().then(() => nothing),
        };
        await registerRecipient(db, { name: "turns", from: "beginning" }, source);
        return planRuns(db, "turns", source, quick);
      },
      "sweeps the alerts": (ask) => {
        const asked = () => ask().then(() => null);
        const questions = { ...sweepQuestions, programmesNear, lastFullAnswerStart: asked };
        return sweepAlerts({ db, log, ...questions }, testAlertContext(), quick);
      },
    };

    test.each(Object.entries(turns))(
      "a process that is stopped while it %s leaves the turn to another one",
      async (_, take) => {
        let resume = (): void => {};
        const begun = new Promise<void>((resolve) => {
          const stopped = take(async () => {
            resolve();
            await new Promise<void>((ended) => (resume = ended));
          });
          stopped.catch(() => {});
        });
        await begun;
        let isTaken = false;
        await eventually("another process has the turn", async () => {
          await take(async () => void (isTaken = true));
          return isTaken;
        });
        resume();
      },
    );

    test("a run of reconciliation that is stopped within a transaction loses it", async () => {
      const run = withRunLease(
        { db, log },
        ({ db: fenced }) =>
          inTransaction(fenced, async (trx) => {
            await sleep(600);
            await trx.raw("select 1");
          }),
        { idleMs: 300 },
      );
      await expect(run).rejects.toThrow(/terminated|terminating|closed|not queryable/);
    });

    const attempt = (handler: Handler) =>
      attemptRun(
        { handlersDb: db, client: {} as ServiceClient, log },
        handler,
        {
          change: { seq: 1 } as never,
          object: {},
          idempotencyKey: "00000000-0000-4000-8000-000000000000",
          isTest: false,
        },
        async () => {},
      );
  });
});
