import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registerReport } from "../../src/parts/reports/cli/report.ts";
import { allReports, findReport } from "../../src/parts/reports/catalogue/all.ts";
import { formats, formatsOf } from "../../src/parts/reports/render/formats.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { coverAll } from "../reports/coverage.ts";
import { letTimePass } from "../reports/sandbox-history.ts";
import { mirrorSales } from "../reports/shop.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let finance: string;

beforeAll(async () => {
  await mirrorSales(database.db, [
    {
      nth: 1,
      at: "2025-05-10T10:00:00Z",
      amount: 1999,
      refunds: [{ at: "2025-05-11T00:00:00Z", amount: 500 }],
    },
    { nth: 2, at: "2025-05-11T10:00:00Z", amount: 500, currency: "jpy" },
  ]);
  await coverAll(database.db, "2025-06-01T00:00:00Z");
  await letTimePass(database.db);
  dashboard = await openDashboard(database);
  finance = (await signedIn(database.db, ["finance"])).cookie;
});
afterAll(() => dashboard.close());

const get = (path: string, cookie = finance) => send(`${dashboard.url}${path}`, { cookie });
const page = async (path: string, cookie = finance) => (await get(path, cookie)).text();

/** A minute ago at least, so that a repeat gives the same bytes. */
async function asOf(): Promise<string> {
  const { rows } = await database.db.raw("select now() - interval '2 minutes' as at");
  return rows[0].at.toISOString();
}

test("the list names every report with what it answers", async () => {
  const list = await page("/reports");
  for (const { name } of allReports) expect(list).toContain(`href="/reports/${name}"`);
});

test("a report is read in place: facts, hash, rows and sums, without script or style of its own", async () => {
  const read = await page("/reports/month-end?from=2025-05");
  expect(read).toMatch(/<dt>SHA-256<\/dt>\s*<dd class="id">[0-9a-f]{64}</);
  expect(read).toContain("19.99");
  expect(read).toContain("Sum usd");
  expect(read).toContain("node src/bin/tallyhook.js report month-end --from 2025-05");
  expect(read).not.toMatch(/<style|\sstyle=|\son\w+=/);
});

test("every report of the catalogue can be read in place", async () => {
  for (const { name } of allReports) {
    const { status } = await get(`/reports/${name}?from=2025-05`);
    expect([name, status]).toEqual([name, 200]);
  }
});

describe("a download has the bytes of the command line", () => {
  // The default accounts are none for beancount.
  test.each(formats.filter((format) => format !== "beancount"))("as %s", async (format) => {
    const folder = await mkdtemp(join(tmpdir(), "tallyhook-download-"));
    const at = await asOf();
    const query = new URLSearchParams({ from: "2025-05", "as-of": at, currency: "usd", format });
    const names = ["month-end", "refunds", "journal"].filter((name) => formatsOf(findReport(name)).includes(format));
    for (const name of names) {
      const answer = await get(`/reports/${name}/download?${query}`);
      expect(answer.headers.get("content-disposition")).toMatch(
        new RegExp(`^attachment; filename="${name}_2025-05-01_2025-05-31\\.`),
      );
      const out = join(folder, name);
      const { error } = await runCommand(
        registerReport,
        ["report", name, "--from", "2025-05", "--as-of", at, "--currency", "usd", "--format", format, "--out", out],
        { env: { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "UTC" } },
      );
      expect(error).toBeNull();
      expect(sha256(Buffer.from(await answer.arrayBuffer()))).toBe(sha256(await readFile(out)));
    }
    await rm(folder, { recursive: true });
  });
});

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

describe("options are those of the command, with its words where they are wrong", () => {
  test.each([
    ["from=2025-13", /--from &quot;2025-13&quot; is not a day/],
    ["from=2025-05&to=2025-04", /is after --to/],
    ["as-of=yesterday", /--as-of &quot;yesterday&quot; is no time\. Use a time with its offset/],
    ["as-of=2999-01-01T00:00:00Z", /later than a minute ago/],
    ["currency=zzz", /No transaction is in the currency &quot;zzz&quot;. The mirror holds jpy, usd/],
    [`from=${encodeURIComponent("'; drop table mirror.orders; --")}`, /is not a day/],
    [`currency=${encodeURIComponent("<script>alert(1)</script>")}`, /&lt;script&gt;/],
    [`from=${"9".repeat(10_000)}`, /is not a day/],
    ["from=%00", /null character/],
    ["from=%1b[31m%07", /is not a day/],
    ["account-sales=4000", /uses no accounts/],
  ])("%s", async (query, says) => {
    const name = query.startsWith("account") ? "refunds" : "month-end";
    const wrong = query.startsWith("account")
      ? `${query}1&account-clearing=1&account-refunds=2&account-chargebacks=3`
      : query;
    const answer = await get(`/reports/${name}?${wrong}`);
    const text = await answer.text();
    expect(answer.status).toBe(400);
    expect(text).toMatch(says);
    expect(text).not.toMatch(/<script>alert|\u001b|\u0000/);
  });

  test("a format that there is none of, and a report that there is none of", async () => {
    expect((await get("/reports/month-end/download?format=../../etc")).status).toBe(400);
    expect((await get("/reports/nothing")).status).toBe(404);
    expect((await get("/reports/__proto__/download?format=csv")).status).toBe(404);
  });

  test("the journal takes accounts from its form, and never a file of the server", async () => {
    const accounts = "account-clearing=1000&account-sales=2000&account-refunds=3000&account-chargebacks=4000";
    const read = await page(`/reports/journal?from=2025-05&${accounts}`);
    expect(read).toContain("<bdi>2000</bdi>");
    expect(read).toContain("--accounts FILE");
    const lacking = await get("/reports/journal?from=2025-05&account-sales=2000");
    expect(lacking.status).toBe(400);
    const file = await page("/reports/journal?from=2025-05&accounts=/etc/passwd");
    expect(file).toContain("<bdi>4000</bdi>");
  });
});

describe("who may read", () => {
  test.each(["/reports", "/reports/month-end?from=2025-05", "/reports/month-end/download?format=csv"])(
    "%s is for those with report:read",
    async (path) => {
      for (const role of ["viewer", "support", "operator", "admin"] as const) {
        const { cookie } = await signedIn(database.db, [role]);
        expect([role, (await get(path, cookie)).status]).toEqual([role, 403]);
      }
    },
  );

  test("notes of staff are read by those who sign them, and it is on record", async () => {
    const address = "/reports/exceptions?from=2025-05";
    const readings = () => database.db("people.audit").where({ action: "report.read" });
    const before = await readings();
    const { cookie } = await signedIn(database.db, ["support", "operator", "admin"]);
    expect((await get(address, cookie)).status).toBe(403);
    expect((await get(address)).status).toBe(200);
    expect((await get("/reports/exceptions/download?format=csv&from=2025-05")).status).toBe(200);
    expect(await readings()).toHaveLength(before.length + 2);
  });
});

test("a report for which there is no place is not begun, and says what is being made", async () => {
  const { createTurns } = await import("../../src/parts/reports/pages/turns.ts");
  const turns = createTurns({ clock: dashboard.clock }, { atOnce: 1, waitMs: 20 });
  let finish = () => {};
  const first = turns.take("Month end", () => new Promise<void>((resolve) => (finish = resolve)));
  expect(await turns.take("Refunds", async () => "never")).toMatchObject({
    busy: [{ what: "Month end" }],
  });
  const next = turns.take("Journal", async () => "made");
  finish();
  expect(await first).toEqual({ done: undefined });
  expect(await next).toEqual({ done: "made" });
  await expect(turns.take("Mrr", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await turns.take("Cut-off", async () => "made")).toEqual({ done: "made" });
});
