import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { makeDataDir } from "../support/data-directory.ts";
import { debianPostgresInstalled, startDebianServer } from "../support/debian-postgres.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";

let server: { url: string; destroy(): Promise<void> };
let dataDir: string;
let environment: Record<string, string>;
const opened: Knex[] = [];

beforeAll(async () => {
  if (!debianPostgresInstalled) return;
  server = await startDebianServer();
  dataDir = await makeDataDir();
  environment = {
    TALLYHOOK_DATA_DIR: dataDir,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    HOST: "127.0.0.1",
    PORT: String(await freePort()),
    ADMIN_PORT: "0",
    SANDBOX_PORT: String(await freePort()),
    DASHBOARD_PORT: "0",
    LOG_LEVEL: "warn",
    RECONCILE_GRACE_SECONDS: "1",
  };
});
afterAll(async () => {
  await killPrograms();
  for (const db of opened) await db.destroy();
  await server?.destroy();
  if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true });
});

async function createdDatabase(name: string): Promise<Knex> {
  await withServer(server.url, (client) => client.query(`create database ${name}`));
  const url = databaseUrl(server.url, name);
  environment["DATABASE_URL"] = url;
  const db = createDatabase({ url, poolMax: 2, applicationName: "tallyhook test" });
  opened.push(db);
  return db;
}

async function tallyhook(...args: string[]): Promise<string> {
  const program = runTallyhook(args, environment);
  const { code } = await program.exited;
  expect(code, `${program.name}\n${program.output()}`).toBe(0);
  return program.output();
}

async function started(): Promise<Program> {
  const program = runTallyhook(["start"], environment);
  await program.printed("Stop with Ctrl-C");
  return program;
}

async function stopped(program: Program): Promise<void> {
  program.signalGroup("SIGINT");
  await program.exited;
}

/** The keys of what a system said to people, each as often as it was said. */
const saidBy = (program: Program, kind: string): string[] =>
  program
    .output()
    .split("\n")
    .filter((line) => line.startsWith('{"alert":'))
    .map((line) => (JSON.parse(line) as { alert: { dedupKey: string } }).alert.dedupKey)
    .filter((key) => key.startsWith(kind))
    .sort();

const months = (db: Knex): Promise<{ month: string; sha256: string }[]> =>
  db("reports.closes").orderBy("month").select(db.raw("month::text"), "sha256");

test.runIf(debianPostgresInstalled)(
  "after a loss, an old backup and a reconciliation give the service's state, and tell nobody twice",
  async () => {
    const before = await createdDatabase("shop");
    const first = await started();
    await fetch(`http://127.0.0.1:${environment["SANDBOX_PORT"]}/_sandbox/traffic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ orders: 20, subscriptions: 3, days: 80, past: true }),
    });
    await tallyhook("reconcile", "--full");
    await tallyhook("trigger", "order.disputed");
    const close = ["--by", "Ada", "--force", "a rehearsal", "--yes"];
    await tallyhook("close", "2026-09", ...close);
    await eventually("people were told", () => saidBy(first, "chargeback:").length === 1);
    const backups = join(dataDir, "backups");
    const made = JSON.parse(await tallyhook("backup", backups, "--json")) as { folder: string };

    // What the backup lacks.
    await tallyhook("trigger", "order.disputed");
    await tallyhook("trigger", "order.refunded");
    await eventually("people were told again", () => saidBy(first, "chargeback:").length === 2);
    const told = saidBy(first, "chargeback:");
    const refund = await before("feed.changes")
      .where({ kind: "order.refunded" })
      .orderBy("seq", "desc")
      .first<{ seq: string; transaction_id: string }>("seq", "transaction_id");
    const [september] = await months(before);
    await stopped(first);
    await before.destroy();
    await withServer(server.url, (client) => client.query("drop database shop"));

    const after = await createdDatabase("again");
    const printed = await tallyhook("restore", made.folder, "--by", "Ada", "--ran-until", new Date().toISOString());
    expect(printed).toContain("neither announced nor given to handlers and destinations again");
    expect(await months(after)).toEqual([september]);
    const second = await started();
    await tallyhook("reconcile", "--full");
    expect(await tallyhook("reconcile", "--full", "--fail-on-drift")).toContain("equal");
    await tallyhook("close", "verify");

    // The refund is known again, under a number that no reader has passed, and is no news.
    const again = await after("feed.changes")
      .where({ kind: "order.refunded", transaction_id: refund?.transaction_id })
      .select<{ seq: string; cause: string }[]>("seq", "cause");
    expect(again).toEqual([{ seq: expect.any(String), cause: "import" }]);
    expect(Number(again[0]?.seq)).toBeGreaterThan(Number(refund?.seq));

    // Both chargebacks have their alerts; people hear of the next one alone.
    await tallyhook("trigger", "order.disputed");
    await eventually("the next one is told", () => saidBy(second, "chargeback:").length > 0);
    const news = saidBy(second, "chargeback:");
    expect(news.filter((key) => told.includes(key))).toEqual([]);
    expect(news).toHaveLength(1);
    const alerts = await after("alerts.alerts").where({ rule: "chargeback" }).pluck("key");
    expect(alerts).toHaveLength(3);
    await stopped(second);
  },
);
