import { once } from "node:events";
import { lstat, mkdtemp, readFile, readdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { registerClose } from "../../../src/parts/reports/cli/close.ts";
import { registerReport } from "../../../src/parts/reports/cli/report.ts";
import { allReports } from "../../../src/parts/reports/catalogue/all.ts";
import { coverAll } from "../../reports/coverage.ts";
import { letTimePass } from "../../reports/sandbox-history.ts";
import { mirrorSales } from "../../reports/shop.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { runCommand } from "./command-line.ts";

let database: TestDatabase;
let folder: string;
const twoMinutesAgo = new Date(Date.now() - 120_000).toISOString();
const may = ["--from", "2025-05", "--to", "2025-05"];

const environment = () => ({ DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "Europe/Berlin" });
const report = (...args: string[]) => runCommand(registerReport, ["report", ...args], { env: environment() });
const close = (...args: string[]) => runCommand(registerClose, ["close", ...args, "--yes"], { env: environment() });

beforeAll(async () => {
  database = await createTestDatabase();
  await mirrorSales(database.db, [
    { at: "2025-05-10T10:00:00Z", amount: 1999 },
    { at: "2025-05-31T21:59:59Z", amount: 1, refunds: [{ at: "2025-06-01T00:00:00Z", amount: 1 }] },
    { at: "2025-05-11T10:00:00Z", amount: 500, currency: "jpy", customer: "=cmd" },
  ]);
  await letTimePass(database.db);
});
afterAll(() => database.destroy());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-report-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("lists every report with what it answers, also without a name", async () => {
  const { out, error } = await report("list");
  expect(error).toBeNull();
  for (const { name, explains } of allReports)
    expect(out).toMatch(new RegExp(`${name} .*${explains.slice(0, 20).replace(/[+?]/g, "\\$&")}`));
  expect((await report()).out).toBe(out);
});

test("prints a table with what it stands on", async () => {
  const { out, error } = await report("month-end", ...may);
  expect(error).toBeNull();
  expect(out).toContain("2025-05-01 to 2025-05-31, both included");
  expect(out).toContain("Europe/Berlin: from 2025-04-30T22:00:00Z, before 2025-05-31T22:00:00Z (UTC)");
  expect(out).toMatch(/Result +INCOMPLETE: .*tallyhook\.js reconcile/);
  expect(out).toMatch(/2025-05 .* usd .* 20\.00 /);
  expect(out).toMatch(/2025-05 .* jpy .* 500 /);
});

test("takes a month alone, after --month and after --from, and all of them where they agree", async () => {
  const csv = (...args: string[]) => report("refunds", ...args, "--format", "csv");
  const { out } = await csv("--from", "2025-06");
  for (const args of [["2025-06"], ["--month", "2025-06"], ["2025-06", "--month", "2025-06", "--to", "2025-06-30"]]) {
    expect(await csv(...args)).toMatchObject({ out, error: null });
  }
});

test("prints one currency alone, whatever its case", async () => {
  const { out } = await report("month-end", ...may, "--currency", "JPY", "--json");
  const { rows } = JSON.parse(out) as {
    rows: { currency: string; cumulative_gross_closing: string }[];
  };
  expect(rows).toMatchObject([{ currency: "jpy", cumulative_gross_closing: "500" }]);
});

test.each([
  [["moth-end"], 'There is no report "moth-end". Did you mean "month-end"?'],
  [["profit"], "There are daily-control, exceptions, month-end"],
  [["month-end", "--from", "2025-06-02", "--to", "2025-06-01"], "--from 2025-06-02 is after --to 2025-06-01"],
  [
    ["month-end", "--from", "2025-02-30"],
    '--from "2025-02-30" is not a day. Use a day such as 2026-10-31, or a month such as 2026-10',
  ],
  [["month-end", "2025-05", "--from", "2025-06"], "2025-05 and --from 2025-06 contradict each other"],
  [["month-end", "2025-05", "--month", "2025-06"], "2025-05 and --month 2025-06 contradict each other"],
  [["month-end", "--month", "2025-05", "--to", "2025-06"], "Use --from 2025-05 --to 2025-06."],
  [["month-end", "--to", "yesterday"], '--to "yesterday" is not a day'],
  [["month-end", "--from", "2026-13"], '--from "2026-13" is not a day'],
  [["month-end", "--to", "2026-13"], '--to "2026-13" is not a day'],
  [["month-end", "--from", "soon", "--to", "2025-13"], '--from "soon" is not a day'],
  [["month-end", "--from", "1999-12"], "--from 1999-12-01 is out of range"],
  [["month-end", "--from", "2100-12-30"], "--from 2100-12-30 is after today"],
  [["month-end", "--from", "1970-01-01"], "out of range"],
  [["month-end", "--currency", "gbp"], "The mirror holds jpy, usd."],
  [["network-monitor", "--currency", "usd"], "network-monitor has no column currency"],
  [["month-end", "--format", "ledger"], "Use --format with one of table, csv, xlsx, json, html."],
  [["month-end", "--format", "pdf"], "Use one of table, csv, xlsx, json"],
  [["month-end", "--as-of", "2099-01-01T00:00:00Z"], "later than a minute ago"],
  [["month-end", "--as-of", "2025-06-01"], "with its offset"],
  [["month-end", "--format", "xlsx"], "add --out"],
  [["refunds", "--accounts", "x.json"], "--accounts is for the journal"],
  [["journal", "--accounts", "/nowhere.json"], "cannot be read"],
  [["month-end", "--out", "/nowhere/at/all.csv"], "cannot be written (ENOENT)"],
  [["month-end", "--out", tmpdir()], "is a folder. Name a file in it."],
  [["month-end", "--json", "--format", "csv"], "cannot be used with option '--format"],
])("refuses %j with a message that says what is possible", async (args, message) => {
  const { out, err, error } = await report(...args);
  expect(out).toBe("");
  expect(`${err}${(error as Error).message}`).toContain(message);
});

test("writes into the file that a link leads to, and makes no file of what is none", async () => {
  const [file, link, socket] = ["file", "link", "socket"].map((name) => join(folder, name)) as [string, string, string];
  await writeFile(file, "former");
  await symlink(file, link);
  expect((await report("month-end", ...may, "--out", link)).error).toBeNull();
  expect(await readlink(link)).toBe(file);
  expect(await readFile(file, "utf8")).toContain("month-end");

  const server = createServer().listen(socket);
  await once(server, "listening");
  const { error } = await report("month-end", ...may, "--out", socket);
  expect((error as Error).message).toBe(
    `${socket} is not a regular file. Name one, or leave out --out to write to standard output.`,
  );
  expect((await lstat(socket)).isSocket()).toBe(true);
  expect((await readdir(folder)).toSorted()).toEqual(["file", "link", "socket"]);
  server.close();
  await once(server, "close");
});

test("writes CSV that can be imported as it is, with what it is beside it", async () => {
  const file = join(folder, "refunds.csv");
  const { error } = await report("refunds", "--from", "2025-06", "--format", "csv", "--out", file);
  expect(error).toBeNull();
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain("2025-05-31,2025-06-01,2025-06-01T00:00:00.000Z,usd,0.01,0.01,full,succeeded,1");
  const about = JSON.parse(await readFile(`${file}.about.json`, "utf8")) as Record<string, unknown>;
  expect(about).toMatchObject({
    report: "refunds",
    rows: 1,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test.each(["csv", "json", "table", "xlsx"])(
  "gives the same bytes of %s as of a time, whenever it is asked",
  async (format) => {
    const [first, second] = [join(folder, "1"), join(folder, "2")];
    const args = ["month-end", ...may, "--as-of", twoMinutesAgo, "--format", format];
    await report(...args, "--out", first);
    await mirrorSales(database.db, [{ nth: 77, at: "2025-05-12T00:00:00Z", amount: 1 }]);
    await report(...args, "--out", second);
    const [a, b] = [await readFile(first), await readFile(second)];
    expect(a.length).toBeGreaterThan(100);
    expect(b.equals(a)).toBe(true);
  },
);

test("leaves no file behind when it fails", async () => {
  await report("month-end", "--currency", "gbp", "--out", join(folder, "x.csv"));
  expect(await readdir(folder)).toEqual([]);
});

test("books the journal by the accounts of a settings file", async () => {
  const accounts = join(folder, "accounts.json");
  await writeFile(accounts, JSON.stringify({ clearing: "1", sales: "2", refunds: "3", chargebacks: "4" }));
  const { out, err } = await report("journal", ...may, "--format", "csv", "--accounts", accounts);
  expect(out.split("\n").slice(0, 3)).toEqual([
    "number,status,date,account,description,debit,credit,currency,line",
    "PRELIM-20250510-USD,preliminary,2025-05-10,1,1 sales,19.99,,USD,1",
    "PRELIM-20250510-USD,preliminary,2025-05-10,2,1 sales,,19.99,USD,2",
  ]);
  expect(err).toContain("SHA-256");
  await writeFile(accounts, JSON.stringify({ clearing: "1" }));
  const { error } = await report("journal", "--accounts", accounts);
  expect((error as Error).message).toMatch(/sales: .*It should be JSON such as/);
});

describe("close", () => {
  test("refuses what is not proved, then freezes it, and later prints come from it", async () => {
    const refused = await close("2025-05");
    expect((refused.error as Error).message).toMatch(/2025-05 is not proved.*Not read.*--force/s);
    await coverAll(database.db, "2025-06-01T00:00:00Z");
    const { out, error } = await close("2025-05");
    expect(error).toBeNull();
    expect(out).toMatch(/2025-05 is closed as of .*: PASS\.\nClose 1, /);
    const before = await report("month-end", ...may, "--json");
    await mirrorSales(database.db, [{ nth: 88, at: "2025-05-13T00:00:00Z", amount: 5 }]);
    const after = await report("month-end", ...may, "--json");
    expect(after.out).toBe(before.out);
    expect(JSON.parse(after.out)).toMatchObject({
      about: { close: { month: "2025-05", reason: null } },
    });
    const changes = await report("changes-after-close", "--from", "2025-06", "--format", "csv");
    expect(changes.out).toContain("2025-05-13,2025-06-01,usd,0.05");
  });

  test.each([
    [["2025-13"], "Use a month such as 2026-10"],
    [["2025-06", "--force", " "], "that shows something"],
  ])("refuses %j", async (args, message) => {
    expect((await close(...args)).err).toContain(message);
  });
});
