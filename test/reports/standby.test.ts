import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { read, utils } from "@e965/xlsx";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { registerChanges } from "../../src/parts/delivery/cli/changes.ts";
import { registerDoctor } from "../../src/main/cli/doctor/doctor.ts";
import type { CheckResult } from "../../src/app/check-result.ts";
import { registerReport } from "../../src/parts/reports/cli/report.ts";
import { migrateSchema } from "../../src/main/schema.ts";
import { UnreachableError } from "../../src/platform/errors.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { readFromStandby } from "../../src/parts/reports/base/read-standby.ts";
import { readingTransaction } from "../../src/parts/reports/base/read-report.ts";
import type { ReportFacts } from "../../src/parts/reports/base/report-facts.ts";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { databaseUrl } from "../support/server-commands.ts";
import { type ReplicatedServer, startReplicatedServer } from "../support/standby.ts";
import { ask } from "./ask.ts";
import { letTimePass } from "./sandbox-history.ts";
import { mirrorSales } from "./shop.ts";

let pair: ReplicatedServer;
let primary: Knex;
let standby: Knex;
beforeAll(async () => {
  pair = await startReplicatedServer({
    // Where autovacuum shortens a table, the replay of its lock would cancel a test's statement at any moment.
    settings: { fsync: "off", autovacuum: "off" },
    // A query in the way of the replay is cancelled at once.
    ofStandby: { max_standby_streaming_delay: "0" },
  });
  const open = (url: string) => createDatabase({ url, poolMax: 2, applicationName: "tallyhook test" });
  [primary, standby] = [open(pair.primary.url), open(pair.standby.url)];
  await mirrorSales(primary, [
    { at: "2025-05-10T10:00:00Z", amount: 1999 },
    { at: "2025-05-31T21:00:00Z", amount: 1, refunds: [{ at: "2025-05-31T22:00:00Z", amount: 1 }] },
  ]);
  await letTimePass(primary);
  await primary.raw("create table changed as select n from generate_series(1, 1000) n");
});
afterAll(async () => {
  await primary?.destroy();
  await standby?.destroy();
  await pair?.destroy();
});

const environment = (more: Record<string, string> = {}) => ({
  DATABASE_URL: pair.primary.url,
  REPORTS_DATABASE_URL: pair.standby.url,
  ...more,
});
const onPrimary = { REPORTS_DATABASE_URL: undefined };
const may = ["--from", "2025-05", "--to", "2025-05"];

const report = (args: readonly string[], more: Record<string, string | undefined> = {}) =>
  runCommand(registerReport, ["report", ...args], { env: { ...environment(), ...more } });

async function readJson(args: readonly string[], more: Record<string, string | undefined> = {}) {
  const { out, error } = await report([...args, "--json"], more);
  expect(error).toBeNull();
  return JSON.parse(out) as { rows: unknown[]; about: ReportFacts };
}

/** Something that the primary commits and a paused standby does not have. */
const commit = () => primary.raw("update changed set n = n where n = 1");

test("every report gives the rows and the hash of the primary", async () => {
  await pair.standby.caughtUp();
  for (const { name } of allReports) {
    const period = { from: "2025-05-01", to: "2025-05-31" };
    const [there, here] = [await ask(standby, name, period), await ask(primary, name, period)];
    expect(there.rows, name).toEqual(here.rows);
    expect(there.about.sha256, name).toBe(here.about.sha256);
  }
});

describe("a standby whose replay is paused", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tallyhook-standby-"));
    await commit();
    await pair.standby.caughtUp();
    await pair.standby.pauseReplay();
    await commit();
  });
  afterAll(async () => {
    await pair.standby.resumeReplay();
    await rm(folder, { recursive: true });
  });

  const lag = /a standby, \d+\.\d s and \d+ bytes behind the primary: it had what was committed/;

  test("prints how far it is behind in every format, and is as of its replay", async () => {
    const { out } = await report(["refunds", ...may]);
    expect(out).toMatch(new RegExp(`^Read from +${lag.source}`, "m"));
    expect(out).toMatch(/^As of .*\(the last that the standby has: a repeat may differ\)$/m);
    expect((await report(["refunds", ...may, "--format", "html"])).out).toMatch(lag);
    expect((await report(["refunds", ...may, "--format", "csv"])).err).toMatch(lag);
    const csv = join(folder, "refunds.csv");
    await report(["refunds", ...may, "--format", "csv", "--out", csv]);
    const { standby: read } = JSON.parse(await readFile(`${csv}.about.json`, "utf8")) as ReportFacts;
    expect(read?.lagBytes).toBeGreaterThan(0);
    expect(read?.lagMs).toBeGreaterThanOrEqual(0);
    const workbook = join(folder, "refunds.xlsx");
    await report(["refunds", ...may, "--format", "xlsx", "--out", workbook]);
    expect(await aboutSheet(workbook)).toMatch(lag);
  });

  test("gives a report as of a time that it has whole, with the hash of the primary", async () => {
    const asOf = ["--as-of", new Date(Date.now() - 600_000).toISOString()];
    const [there, here] = [
      await readJson(["month-end", ...may, ...asOf]),
      await readJson(["month-end", ...may, ...asOf], onPrimary),
    ];
    expect(there.about.sha256).toBe(here.about.sha256);
    expect(there.about).toMatchObject({ isLive: false, asOf: here.about.asOf });
    expect(there.about.standby?.lagBytes).toBeGreaterThan(0);
    expect(here.about).not.toHaveProperty("standby");
  });

  test("refuses a report as of a time of which it may lack records", async () => {
    const asOf = new Date(Date.now() - 60_001).toISOString();
    const { error, out } = await report(["month-end", ...may, "--as-of", asOf]);
    expect(out).toBe("");
    expect((error as Error).message).toMatch(
      /^--as-of .* is later than what the standby of REPORTS_DATABASE_URL has for certain.*pg_wal_replay_resume/,
    );
  });

  test("refuses a report of now when it is too far behind, and says how far", async () => {
    const refused = await eventually("it is a second behind", async () => {
      const { error } = await report(["month-end", ...may], { REPORTS_MAX_LAG_SECONDS: "1" });
      return error as Error | null;
    });
    expect(refused).toBeInstanceOf(UnreachableError);
    expect(refused.message).toMatch(
      /REPORTS_MAX_LAG_SECONDS allows 1 s\. Wait, raise it, or give an --as-of before .* Its replay is paused/,
    );
    const doctor = await examine({ REPORTS_MAX_LAG_SECONDS: "1" });
    expect(doctor).toMatchObject({
      status: "warning",
      detail: expect.stringMatching(/behind the primary: reports of now are refused/) as string,
    });
  });
});

async function aboutSheet(file: string): Promise<string> {
  const { Sheets } = read(await readFile(file));
  return utils.sheet_to_csv(Sheets["about"] ?? {});
}

async function examine(more: Record<string, string> = {}): Promise<CheckResult | undefined> {
  const { out } = await runCommand(registerDoctor, ["doctor", "--json"], {
    env: environment(more),
  });
  const { findings } = JSON.parse(out) as { findings: CheckResult[] };
  return findings.find(({ check }) => check === "reports standby");
}

test("doctor says how far the standby is", async () => {
  expect(await examine()).toMatchObject({
    status: "ok",
    detail: expect.stringMatching(/^it is \d+\.\d s and \d+ bytes? behind the primary$/) as string,
  });
});

describe("what is no standby of the database", () => {
  test.each([
    ["the primary itself", () => pair.primary.url, /the server is no standby/],
    ["a server of another cluster", () => inject("serverUrl"), /another cluster/],
    ["another database", () => databaseUrl(pair.standby.url, "postgres"), /another database/],
  ])("is refused, by doctor too: %s", async (_, url, message) => {
    const more = { REPORTS_DATABASE_URL: url() };
    const { error, out } = await report(["refunds", ...may], more);
    expect(out).toBe("");
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).toMatch(/^REPORTS_DATABASE_URL: /);
    expect(await examine(more)).toMatchObject({ status: "failed" });
  });

  test("and a standby in the place of the primary is refused as well", async () => {
    const { error } = await report(["refunds", ...may], {
      ...onPrimary,
      DATABASE_URL: pair.standby.url,
    });
    expect((error as Error).message).toMatch(/^DATABASE_URL: the server is a standby, so a report/);
  });
});

describe("a query that the standby cancels for the replay", () => {
  /** Reads as a report does. So often, what it still needs is removed on the primary meanwhile. */
  function readInTheWay(times: number, before: (write: () => Promise<void>) => Promise<void>) {
    let attempts = 0;
    const reading = readFromStandby(
      {
        db: primary,
        standby: {
          connect: () => Promise.resolve(standby),
          assertMigrated: () => Promise.resolve(),
          maxLagSeconds: 300,
        },
        write: () => Promise.resolve(),
      },
      undefined,
      ({ db }, write) =>
        readingTransaction(db, async (trx) => {
          await trx.raw("select count(*) from changed");
          await before(() => write("a part"));
          if (attempts++ < times) {
            await primary.raw("update changed set n = n + 1");
            await primary.raw("vacuum changed");
            await trx.raw("select pg_sleep(60)");
          }
          return attempts;
        }),
    );
    return reading;
  }

  test("is repeated once", async () => {
    expect(await readInTheWay(1, () => Promise.resolve())).toBe(2);
  });

  test("that is cancelled again ends with what to set", async () => {
    const refused = readInTheWay(2, () => Promise.resolve());
    await expect(refused).rejects.toBeInstanceOf(UnreachableError);
    await expect(refused).rejects.toThrow(/hot_standby_feedback = on.*max_standby_streaming_delay/);
  });

  test("is not repeated after a part of the report was written", async () => {
    await expect(readInTheWay(1, (write) => write())).rejects.toBeInstanceOf(UnreachableError);
  });
});

test("the feed cannot be read from a standby, which does not know what is being written", async () => {
  await pair.standby.caughtUp();
  const { error, out } = await runCommand(registerChanges, ["changes"], {
    env: environment({ DATABASE_URL: pair.standby.url }),
  });
  expect(out).toBe("");
  expect(String(error)).toMatch(/DATABASE_URL/);
  expect(String(error)).toMatch(/standby/);
});

test("a standby without what migrate made since is refused", async () => {
  await pair.standby.caughtUp();
  await primary("tallyhook_schema_objects").whereLike("file", "%verdict%").update({ file_sha256: "" });
  await pair.standby.caughtUp();
  await pair.standby.pauseReplay();
  await primary.transaction(async (trx) => migrateSchema(trx));
  const { error } = await report(["refunds", ...may]);
  await pair.standby.resumeReplay();
  expect((error as Error).message).toMatch(
    /^REPORTS_DATABASE_URL: the standby lacks .*verdict.*Wait until it has caught up/,
  );
});
