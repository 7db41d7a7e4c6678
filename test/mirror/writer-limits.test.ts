import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrateSchema } from "../../src/main/schema.ts";
import { type WriterLimits, beginWriting } from "../../src/mirror/write/apply.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { inTransaction } from "../../src/platform/postgres/transactions.ts";
import { createTestDatabase } from "../support/database.ts";
import { debianPostgresInstalled, startDebianServer } from "../support/debian-postgres.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";

/** What an operator may have set for the role or the database: limits of hours, and none. */
const settings = {
  "long limits": "10min",
  "no limits": "0",
} as const;

/** Each limit of a writer, how it is reached, and the code with which the server says so. A new one needs an entry. */
const limits: Record<
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

const unlimited: WriterLimits = { statementMs: 30_000, lockMs: 30_000, transactionMs: 30_000 };

interface Server {
  url: string;
  destroy(): Promise<void>;
}

const servers: [string, () => Promise<Server>][] = [
  ["the embedded server", () => createTestDatabase({ poolMax: 1 })],
  ...(debianPostgresInstalled
    ? [["Debian's server", startMigrated] satisfies [string, () => Promise<Server>]]
    : []),
];

async function startMigrated(): Promise<Server> {
  const server = await startDebianServer();
  await withServer(server.url, (client) => client.query("create database limits"));
  const url = databaseUrl(server.url, "limits");
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
  await migrateSchema(db);
  await db.destroy();
  return { ...server, url };
}

describe.each(servers)("a writer on %s", (_name, start) => {
  let server: Server;
  let version: number;
  beforeAll(async () => {
    server = await start();
    version = await withServer(server.url, async (client) => {
      const { rows } = await client.query<{ n: number }>(
        "select current_setting('server_version_num')::int as n",
      );
      return rows[0]?.n ?? 0;
    });
  });
  afterAll(() => server.destroy());

  describe.each(Object.entries(settings))("with %s of role and database", (_setting, value) => {
    let db: Knex;
    let other: Knex;
    beforeAll(async () => {
      await withServer(server.url, async (client) => {
        const { rows } = await client.query<{ db: string; role: string }>(
          "select current_database() as db, current_user as role",
        );
        const [{ db: name, role }] = rows as [{ db: string; role: string }];
        for (const setting of [
          "statement_timeout",
          "lock_timeout",
          "idle_in_transaction_session_timeout",
          ...(version >= 170_000 ? ["transaction_timeout"] : []),
        ]) {
          await client.query(`alter database ${name} set ${setting} = '${value}'`);
          await client.query(`alter role ${role} in database ${name} set ${setting} = '${value}'`);
        }
      });
      const made = { url: server.url, applicationName: "tallyhook test" };
      db = createDatabase({ ...made, poolMax: 2 });
      other = createDatabase({ ...made, poolMax: 1 });
    });
    afterAll(async () => {
      await db.destroy();
      await other.destroy();
    });

    const write = (given: Partial<WriterLimits>, work: (trx: Knex.Transaction) => unknown) =>
      inTransaction(db, async (trx) => {
        await beginWriting(trx, { ...unlimited, ...given });
        await work(trx);
        // A session that was ended while it was idle says so at the next statement.
        await trx.raw("select 1");
      });

    test.each(Object.entries(limits))("is ended by %s", async (name, { given, reach, code }) => {
      // Older servers have no such limit; docs/operations.md says what that means.
      if (name === "transactionMs" && version < 170_000) return;
      const locking = await other.transaction();
      await locking.raw("lock table mirror.orders in access exclusive mode");
      try {
        await expect(write(given, reach)).rejects.toMatchObject(code === null ? {} : { code });
      } finally {
        await locking.rollback();
      }
    });

    test("does not gain time by beginning twice", async () => {
      if (version < 170_000) return;
      const given = { transactionMs: 1_000 };
      const again = async (trx: Knex.Transaction) => {
        await trx.raw("select pg_sleep(0.6)");
        await beginWriting(trx, { ...unlimited, ...given });
        await trx.raw("select pg_sleep(0.7)");
      };
      await expect(write(given, again)).rejects.toMatchObject({ code: "25P04" });
    });
  });
});
