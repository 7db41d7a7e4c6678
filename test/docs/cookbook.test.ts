import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { type DatabaseRoles, makeDatabaseRoles } from "../support/database-roles.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";

/** A month of a sandbox's traffic: orders, declines, a chargeback, findings, alerts, a closed month. */
const history = new URL("../migrations/version-0.1.sql.gz", import.meta.url);
const page = readFileSync(new URL("../../docs/data-model.md", import.meta.url), "utf8");
const name = `${inject("templateDatabase")}_cookbook_${randomBytes(4).toString("hex")}`;
let db: Knex;
let roles: DatabaseRoles;

const statementsUnder = (text: string): string[] =>
  [...text.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = ""]) => sql);

const [, cookbook = ""] = page.split(/^## Cookbook$/m);
const queries = cookbook
  .split(/^### /m)
  .slice(1)
  .map((text) => [text.slice(0, text.indexOf("\n")), statementsUnder(text)] as const);

/** In a session of the role itself. */
async function asRole<T extends object>(sql: string): Promise<T[]> {
  return db.transaction(async (trx) => {
    await trx.raw(`set local session authorization ${roles.nameOf("bi")}`);
    const { rows } = await trx.raw<{ rows: T[] }>(sql.replaceAll("?", "\\?"));
    return rows;
  });
}

beforeAll(async () => {
  const server = inject("serverUrl");
  await withServer(server, (client) => client.query(`create database ${name} template template0`));
  const dump = gunzipSync(await readFile(history)).toString();
  await withServer(databaseUrl(server, name), (client) => client.query(dump.replace("CREATE SCHEMA public;", "")));
  db = createDatabase({
    url: databaseUrl(server, name),
    poolMax: 1,
    applicationName: "tallyhook test",
  });
  await migrateSchema(db);
  // The history has no renewal that is past due.
  await db.raw(`
    update mirror.subscriptions set status = 'past_due'
    where id = (select min(id collate "C") from mirror.subscriptions where status = 'active')`);
  roles = await makeDatabaseRoles(databaseUrl(server, name));
});
afterAll(async () => {
  await roles.drop();
  await db.destroy();
  await withServer(inject("serverUrl"), (client) => client.query(`drop database ${name}`));
});

describe("the SQL cookbook", () => {
  test("has fifteen questions, each with one query", () => {
    expect(queries.map(([, sql]) => sql.length)).toEqual(Array.from({ length: 15 }, () => 1));
  });

  test.each(queries)("%s: the query finds rows as the read-only role", async (_, [sql = ""]) => {
    expect((await asRole(sql)).length).toBeGreaterThan(0);
  });
});

describe("the read-only role", () => {
  test.each([
    "select raw from inbox.receipts",
    "select raw from inbox.events",
    "select key from mirror.erasure_key",
    "select hash from mirror.erased_contacts",
    "select ciphertext from receiver.secrets",
    "select message from alerts.outbox",
    "select email from mirror.customers",
    "select data from mirror.customers",
    "select description from mirror.orders",
    "select card_last_four from mirror.transactions",
    "select email from people.accounts",
    "select token_hash from people.sessions",
    "select reason from mirror.heals",
    "select inbox.drop_partitions(1)",
    "select mirror.overrule('{}', '{}', '{}', now(), now(), 1)",
    "create table mirror.own (n integer)",
    "create table public.own (n integer)",
    "update mirror.orders set total = 0",
    "delete from reconcile.findings",
  ])("may not: %s", async (sql) => {
    await expect(asRole(sql)).rejects.toMatchObject({ code: "42501" });
  });

  test.each(["month_end", "refunds", "chargeback_list", "delivery_statement", "exceptions"])(
    "may ask reports.%s, also as of a time",
    async (report) => {
      const period = "'2026-10-01T00:00:00Z', '2026-11-01T00:00:00Z', 'UTC'";
      await asRole(`select * from reports.${report}(${period}, null)`);
      await asRole(`select * from reports.${report}(${period}, '2026-11-22T19:22:00Z')`);
    },
  );
});
