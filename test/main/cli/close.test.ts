import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { registerClose } from "../../../src/parts/reports/cli/close.ts";
import { registerReport } from "../../../src/parts/reports/cli/report.ts";
import { UsageError } from "../../../src/platform/errors.ts";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { coverAll } from "../../reports/coverage.ts";
import { letTimePass } from "../../reports/sandbox-history.ts";
import { mirrorSales } from "../../reports/shop.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { runCommand } from "./command-line.ts";

let database: TestDatabase;
let folder: string;

beforeEach(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "tallyhook-close-"));
  await mirrorSales(database.db, [
    {
      nth: 1,
      at: "2025-05-10T10:00:00Z",
      amount: 1999,
      refunds: [{ at: "2025-05-11T00:00:00Z", amount: 500 }],
    },
    { nth: 2, at: "2025-05-11T10:00:00Z", amount: 500, currency: "jpy" },
  ]);
  await letTimePass(database.db);
  return async () => {
    await database.destroy();
    await rm(folder, { recursive: true });
  };
});

interface Outcome {
  out: string;
  err: string;
  error: Error | null;
  exitCode: number | null;
}

async function close(args: string[], typed?: string): Promise<Outcome> {
  const { error, ...run } = await runCommand(registerClose, ["close", ...args], {
    env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin" },
    ...(typed === undefined ? {} : { terminal: true, stdin: typed }),
  });
  return { ...run, error: error as Error | null };
}

/** Everything that a close writes. */
async function written(): Promise<number> {
  const tables = ["closes", "closed_reports", "closed_rows", "closed_movements", "closed_evidence"];
  const counts = await Promise.all(tables.map((table) => database.db(`reports.${table}`).count<{ count: string }[]>()));
  return counts.reduce((sum, [row]) => sum + Number(row?.count), 0);
}

const findLate = (id: string, seenAt: string) =>
  recordFindings(database.db, { run: null, seenAt: new Date(seenAt) }, [
    {
      key: `missing:order:${id}`,
      class: "missing_there",
      identity: null,
      severity: "critical",
      resource: "order",
      objectId: id,
      differences: [],
      amountAtRiskMinor: 5n,
      currency: "usd",
      cause: "unexplained",
      evidence: {},
    },
  ]);

describe("of a month that is proved", () => {
  beforeEach(() => coverAll(database.db, "2025-06-01T00:00:00Z"));

  test("shows month, verdict and totals, asks, and freezes exactly what it showed", async () => {
    const { out, err, error } = await close(["2025-05"], "y\r");
    expect(error).toBeNull();
    expect(err).toMatch(/month-end .* PASS .* [0-9a-f]{64}/);
    expect(err).toMatch(/jpy .* sale .* 1 .* 500 /);
    expect(err).toMatch(/usd .* refund .* 1 .* -5\.00 /);
    expect(err).toMatch(/2025-05 as of .*: PASS; closed by /);
    expect(err).toContain("Freeze 2025-05 permanently? [y/N] ");
    const hashOf = (text: string) => /month-end [^\n]*([0-9a-f]{64})/.exec(text)?.[1];
    expect(hashOf(out)).toBe(hashOf(err));
    const asOf = /2025-05 as of (\S+):/.exec(err)?.[1];
    expect(out).toContain(`2025-05 is closed as of ${asOf}: PASS.\nClose 1, by tester at `);
  });

  test.each(["n\r", "\r", "\u0003"])("freezes nothing after %j", async (typed) => {
    const { out, error } = await close(["2025-05"], typed);
    expect(error).toBeInstanceOf(UsageError);
    expect(error?.message).toBe("Not confirmed, so nothing was done.");
    expect(out).toBe("");
    expect(await written()).toBe(0);
  });

  test("without a terminal it is refused before anything is read, and --yes does not ask", async () => {
    const refused = await close(["2025-05"]);
    expect(refused.error).toBeInstanceOf(UsageError);
    expect(refused.error?.message).toContain("Add --yes");
    expect(await written()).toBe(0);
    const { error, err } = await close(["2025-05", "--yes"]);
    expect(error).toBeNull();
    expect(err).toMatch(/^WARNING: ONE PERSON CLOSES 2025-05\./);
    expect(await written()).toBeGreaterThan(0);
  });

  test("--dry-run prints what would be frozen and its verdict, asks nothing and writes nothing", async () => {
    const { out, error } = await close(["2025-05", "--dry-run"]);
    expect(error).toBeNull();
    expect(out).toMatch(/2025-05 as of .*: PASS/);
    expect(await written()).toBe(0);
    const { out: json } = await close(["2025-05", "--dry-run", "--json"]);
    const shown = JSON.parse(json) as { reports: { report: string; sha256: string }[] };
    expect(shown).toMatchObject({ month: "2025-05", verdict: "PASS", refusal: null });
    const done = await close(["2025-05", "--yes", "--json"]);
    const closed = JSON.parse(done.out) as typeof shown;
    const hashes = ({ reports }: typeof shown) => reports.map(({ report, sha256 }) => [report, sha256]);
    expect(hashes(closed)).toEqual(hashes(shown));
  });

  test("--dry-run needs nobody's name, a close does", async () => {
    const run = (...args: string[]) =>
      runCommand(registerClose, ["close", "2025-05", ...args], {
        env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin" },
        user: { name: "root", sudoUser: null },
      });
    const shown = await run("--dry-run");
    expect(shown.error).toBeNull();
    expect(shown.out).toContain("closed by whoever --by names.");
    expect(String((await run("--yes")).error)).toContain('Say who you are: --by "Your Name".');
    expect(await written()).toBe(0);
  });

  test.each(["2025-13", "1999-12", "9999-12"])("%s is no month that can be closed", async (month) => {
    const { err, error } = await close([month, "--dry-run"]);
    expect(error).toMatchObject({ code: "commander.invalidArgument" });
    expect(err).toContain("Use a month such as 2026-10, from 2000-01 to 2100-12.");
  });

  test("who closed it is printed on every report of the month", async () => {
    expect((await close(["2025-05", "--yes", "--by", "Anna Müller "])).error).toBeNull();
    const { out } = await runCommand(registerReport, ["report", "month-end", "--from", "2025-05"], {
      env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin" },
    });
    expect(out).toContain("2025-05 by Anna Müller, close 1 at ");
  });

  test.each(["", " ", "a\nb", "x".repeat(101)])("refuses --by %j", async (name) => {
    const { err, error } = await close(["2025-05", "--yes", "--by", name]);
    expect(error).not.toBeNull();
    expect(err).toContain("Use a name of one line");
    expect(await written()).toBe(0);
  });

  test("a second close of the same minute says how long to wait", async () => {
    await coverAll(database.db, "2025-07-01T00:00:00Z");
    await close(["2025-05", "--yes"]);
    const { error } = await close(["2025-06", "--yes"]);
    expect(error?.message).toMatch(/2025-05 was closed less than a minute ago.*Wait ([1-5]?\d|60) seconds/);
  });

  test("freezes runs as they were at its cut-off, though one of them works again", async () => {
    const [run] = await database.db("reconcile.runs").pluck<string[]>("id");
    const evidence = async () => {
      const [row] = await database
        .db("reports.closed_evidence")
        .where("kind", "runs")
        .whereRaw("content->>'id' = ?", [String(run)])
        .select("content");
      return row?.content;
    };
    const [before] = await database.db("reconcile.runs").where("id", run).select("finished_at");
    await database
      .db("reconcile.runs")
      .where("id", run)
      .update({ state: "running", finished_at: database.db.fn.now() });
    expect((await close(["2025-05", "--yes"])).error).toBeNull();
    const { state, finished_at } = await evidence();
    expect({ state, finishedAt: new Date(finished_at) }).toEqual({
      state: "complete",
      finishedAt: before.finished_at,
    });
  });

  test("verify lists every close, and exits with 3 when one is not what was sealed", async () => {
    expect((await close(["verify"])).out).toBe("No month is closed.\n");
    await close(["2025-05", "--yes", "--by", "anna"]);
    const good = await close(["verify"]);
    expect(good).toMatchObject({ error: null, exitCode: null });
    expect(good.out).toMatch(/2025-05 .* anna .* PASS .* everything .* [0-9a-f]{64} .* intact/);
    expect(good.out).toContain("Every closed month matches its seal.");
    await database.db.transaction(async (trx) => {
      await trx.raw("set local session_replication_role = replica");
      await trx.raw("update reports.closed_movements set amount = amount * 10 where currency = 'usd'");
    });
    const bad = await close(["verify", "--json"]);
    expect(bad.exitCode).toBe(3);
    expect(JSON.parse(bad.out)).toMatchObject({
      intact: false,
      closes: [{ month: "2025-05", problems: ["movements differs from what was sealed"] }],
    });
    const text = await close(["verify"]);
    expect(text.exitCode).toBe(3);
    expect(text.out).toMatch(/DIFFERS .*\n.*\n2025-05: movements differs from what was sealed\./);
    const report = await runCommand(registerReport, ["report", "month-end", "--from", "2025-05"], {
      env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin" },
    });
    expect(report.error).toMatchObject({ name: "BrokenSealError", exitCode: 3 });
  });

  test("export writes a whole file or none", async () => {
    const file = join(folder, "may.close");
    const early = await close(["export", "2025-05", "--out", file]);
    expect(early.error?.message).toBe("2025-05 is not closed. No month is closed.");
    expect(await readdir(folder)).toEqual([]);
    await close(["2025-05", "--yes"]);
    const { out, error } = await close(["export", "2025-05", "--out", file]);
    expect(error).toBeNull();
    expect(out).toContain(`"node docs/verify-close.mjs ${file}"`);
    const [head = ""] = (await readFile(file, "utf8")).split("\n");
    const { sha256 } = JSON.parse(head) as { sha256: string };
    expect(out).toContain(sha256);
    expect(await readdir(folder)).toEqual(["may.close"]);
  });
});

describe("where two people close a month", () => {
  beforeEach(() => coverAll(database.db, "2025-06-01T00:00:00Z"));
  const always = { REPORTS_CLOSE_FOUR_EYES: "always" };
  const run = async (...args: string[]) =>
    runCommand(registerClose, ["close", ...args], {
      env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin", ...always },
    });

  test("one prepares, another closes exactly that, and all of it is on record", async () => {
    expect(String((await run("2025-05", "--yes", "--by", "ben")).error)).toContain(
      '"node src/bin/tallyhook.js close prepare 2025-05 --by NAME"',
    );
    const prepared = await run("prepare", "2025-05", "--by", "ada", "--json");
    const { reports } = JSON.parse(prepared.out);
    expect(String((await run("2025-05", "--yes", "--by", "Ada")).error)).toContain(
      "ada prepared 2025-05, so another person has to close it",
    );
    expect(String((await run("2025-05", "--yes", "--by", "ben", "--force", "x")).error)).toContain(
      "close takes what was prepared",
    );
    const closed = JSON.parse((await run("2025-05", "--yes", "--by", "ben", "--json")).out);
    expect(closed).toMatchObject({ closedBy: "ben", preparedBy: "ada", reports });
    expect((await run("verify")).out).toMatch(/2025-05 .* ben, prepared by ada .* intact/);
    const { id, asOf, verdict } = JSON.parse(prepared.out);
    const acts = await database.db("people.audit").orderBy("id").select("action", "actor", "after");
    expect(acts).toEqual([
      {
        action: "month.prepared",
        actor: "ada",
        after: { preparation: id, verdict, asOf, isForced: false },
      },
      {
        action: "month.closed",
        actor: "ben",
        after: { preparation: id, sha256: closed.sha256, verdict, preparedBy: "ada" },
      },
    ]);
  });

  test("a preparation is withdrawn once", async () => {
    await run("prepare", "2025-05", "--by", "ada");
    expect((await run("withdraw", "2025-05", "--by", "ada")).out).toBe("The preparation of 2025-05 is withdrawn.\n");
    expect(String((await run("withdraw", "2025-05", "--by", "ada")).error)).toContain(
      "No preparation of 2025-05 stands",
    );
  });
});

test("a close by one person says aloud what it passes over, and is on record", async () => {
  await coverAll(database.db, "2025-06-01T00:00:00Z");
  await close(["prepare", "2025-05", "--by", "ada"]);
  expect((await close(["2025-05", "--dry-run"])).err).not.toContain("WARNING");
  const { err, error } = await close(["2025-05", "--yes", "--by", "anna"]);
  expect(error).toBeNull();
  expect(err).toContain("WARNING: ONE PERSON CLOSES 2025-05.");
  expect(err).toContain("The seal will name anna alone, and that name is not checked.");
  expect(err).toContain("ada has prepared 2025-05, and this does NOT close what was prepared");
  expect(await database.db("people.audit").select("action", "actor", "subject_id")).toEqual([
    { action: "month.prepared", actor: "ada", subject_id: "2025-05" },
    { action: "month.closed", actor: "anna", subject_id: "2025-05" },
  ]);
});

describe("of a month that is not proved", () => {
  test("right after a run, it says to wait and how long, not that nothing was read", async () => {
    await coverAll(database.db, "2025-06-01T00:00:00Z", { endedAgo: "1 second" });
    for (const args of [
      ["2025-05", "--yes"],
      ["2025-05", "--dry-run"],
    ]) {
      const { error } = await close(args);
      expect(error?.message).toMatch(
        /^2025-05 is not proved yet: a close is as of a minute ago .*read or acknowledged since.*Wait ([1-5]?\d|60) seconds/,
      );
    }
    expect(await written()).toBe(0);
  });

  test("does not say to wait where nothing was recorded since: what blocks it is named, however often it is run", async () => {
    await coverAll(database.db, "2025-06-01T00:00:00Z");
    await findLate("abc", "2025-07-12T23:00:00Z");
    await letTimePass(database.db);
    // As a time it is of was written into findings before, without a version that says so.
    await database.db.transaction(async (trx) => {
      await trx.raw("set local session_replication_role = replica");
      await trx("reconcile.findings").update({ object_at: "2025-07-12T23:00:00Z" });
    });
    const { error } = await close(["2025-05", "--yes"]);
    expect(error?.message).not.toContain("Wait");
    expect(error?.message).toMatch(/^Open findings \(1\): .* order abc/m);
  });

  test("names the days that were not read, of which resources, and the command", async () => {
    await coverAll(database.db, "2025-05-20T22:00:00Z", { resources: ["order", "transaction"] });
    await coverAll(database.db, "2025-06-01T00:00:00Z", {
      from: "2025-05-22T22:00:00Z",
      resources: ["order", "transaction"],
    });
    const { error, out } = await close(["2025-05", "--dry-run"]);
    expect(error?.message.split("\n")).toEqual([
      "2025-05 is not proved, so nothing was frozen.",
      expect.stringMatching(/^INCOMPLETE: all \d+ reports\.$/),
      "Not read: orders, transactions from 2025-05-21 to 2025-05-22; subscriptions, customers up to 2025-05-31. " +
        '"node src/bin/tallyhook.js reconcile" reads on.',
      expect.stringMatching(/^--force "REASON" /),
    ]);
    expect(out).toMatch(/2025-05 as of .*: INCOMPLETE/);
  });

  test("says that changes to older sales were never read, where only ranges were", async () => {
    await coverAll(database.db, "2025-06-01T00:00:00Z");
    await database.db("reconcile.runs").update({ kind: "range" });
    const { error } = await close(["2025-05", "--yes"]);
    expect(error?.message).toMatch(
      /^Chargebacks, voids and settlements of older sales have never been read\. "node src\/bin\/tallyhook\.js reconcile" reads/m,
    );
  });

  test("names the findings, with their days and the command", async () => {
    await coverAll(database.db, "2025-06-01T00:00:00Z");
    await findLate("abc", "2025-05-12T23:00:00Z");
    await letTimePass(database.db);
    const { error } = await close(["2025-05", "--yes"]);
    expect(error?.message).toMatch(/^FAIL: all \d+ reports\.$/m);
    expect(error?.message).toMatch(
      /^Open findings \(1\): \d+ \(critical missing there order abc, since 2025-05-13\)\. .*"node src\/bin\/tallyhook\.js findings/m,
    );
    expect(await written()).toBe(0);
    const forced = await close(["2025-05", "--yes", "--force", "told the auditor"]);
    expect(forced.error).toBeNull();
    expect(forced.out).toContain(": FAIL.\nClose 1, by ");
  });

  test("names the first five findings, and says how many more there are", async () => {
    await coverAll(database.db, "2025-06-01T00:00:00Z");
    for (const day of [1, 2, 3, 4, 5, 6, 7]) await findLate(`o${day}`, `2025-05-0${day}T12:00:00Z`);
    await letTimePass(database.db);
    const { error } = await close(["2025-05", "--yes"]);
    expect(error?.message).toMatch(
      /^Open findings \(7\): .* order o1, .* order o5, since 2025-05-05\) and 2 more\. .*"node src\/bin\/tallyhook\.js findings/m,
    );
    expect(error?.message).not.toContain("order o6");
  });

  test("names the report and its days where the service's list had other sums", async () => {
    const run = await coverAll(database.db, "2025-06-01T00:00:00Z");
    await database.db("reconcile.daily_sums").insert(
      ["2025-05-10", "2025-05-11"].map((day) => ({
        run,
        slice: 2,
        day,
        currency: "usd",
        type: "sale",
        status: "succeeded",
        n: 7,
        sum_minor: 70,
      })),
    );
    const { error } = await close(["2025-05", "--yes"]);
    expect(error?.message).toMatch(/^FAIL: daily-control\.$/m);
    expect(error?.message).toMatch(
      /^daily-control differs on 2025-05-10, 2025-05-11\. "node src\/bin\/tallyhook\.js reconcile --from 2025-04-30T22:00:00Z --to /m,
    );
  });
});
