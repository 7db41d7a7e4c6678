import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { registerReport } from "../../src/parts/reports/cli/report.ts";
import { reportMailTasks } from "../../src/parts/reports/report-mail.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createLog } from "../../src/platform/log.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import type { ScheduledTask } from "../../src/core/worker/scheduled-tasks.ts";
import { letTimePass } from "../reports/sandbox-history.ts";
import { mirrorSales } from "../reports/shop.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { runCommand } from "./cli/command-line.ts";
import { allParts } from "../../src/main/parts.ts";

let database: TestDatabase;
let server: MailServer;
const runtimes: Runtime[] = [];

const environment = (more: Record<string, string> = {}) => ({
  DATABASE_URL: database.url,
  SMTP_URL: server.url,
  MAIL_FROM: "tallyhook@example.com",
  REPORTS_CRON: "0 7 * * *",
  REPORTS_MAIL_TO: "finance@example.com, cfo@example.com",
  REPORTS_MAIL: "daily-control,month-end:month",
  REPORTS_MAIL_FORMAT: "html,csv",
  TALLYHOOK_TIME_ZONE: "Europe/Berlin",
  ...more,
});

const untilStopped = new AbortController().signal;

/** A worker's tasks at a moment of the service's clock. */
async function tasksAt(moment: string, more: Record<string, string> = {}): Promise<Record<string, ScheduledTask>> {
  const log = createLog({ level: "silent", name: "test" });
  const runtime = createRuntime(allParts, loadConfig(environment(more)), log);
  runtime.serviceClock.observe(new Date(moment));
  runtimes.push(runtime);
  return reportMailTasks(runtime);
}

const mailings = () => database.db("reports.mailings").orderBy("key").select("key", "state", "attempts", "error");
const makeDue = () => database.db("reports.mailings").where({ state: "due" }).update({ next_attempt_at: "2020-01-01" });
const headerOf = (source: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, "im").exec(source.replaceAll(/\r\n[ \t]+/g, " "))?.[1]?.trim();

beforeAll(async () => {
  [database, server] = await Promise.all([createTestDatabase(), startMailServer()]);
  await mirrorSales(database.db, [
    { at: "2025-05-31T10:00:00Z", amount: 1999 },
    { at: "2025-05-31T21:59:59Z", amount: 500 },
    { at: "2025-05-31T22:00:00Z", amount: 77 },
  ]);
  await letTimePass(database.db);
});
afterEach(async () => {
  server.refuseWith(null);
  server.mails.splice(0);
  await database.db("reports.mailings").delete();
  for (const runtime of runtimes.splice(0)) await runtime.close();
});
afterAll(async () => {
  await server.close();
  await database.destroy();
});

test("yesterday and last month are mailed once each, however many workers fire", async () => {
  const moment = "2025-06-01T05:00:00Z";
  const workers = await Promise.all([tasksAt(moment), tasksAt(moment), tasksAt(moment)]);
  await Promise.all(workers.map(async (tasks) => tasks["report-mail"]?.run(untilStopped)));
  await workers[0]?.["report-mail"]?.run(untilStopped);
  expect(await mailings()).toMatchObject([
    { key: "day:2025-05-31", state: "sent" },
    { key: "month:2025-05", state: "sent" },
  ]);
  expect(server.mails).toHaveLength(2);
  const day = server.mails.find(({ source }) => source.includes("finance reports of 2025-05-31"));
  expect(day).toMatchObject({
    from: "tallyhook@example.com",
    to: ["finance@example.com", "cfo@example.com"],
  });
  expect(headerOf(day?.source ?? "", "Subject")).toMatch(/^INCOMPLETE: finance reports of/);
  expect(day?.source).toContain("filename=daily-control_2025-05-31_2025-05-31.html");
  const csv = /filename=daily-control_\S+\.csv[\s\S]*?\r\n\r\n([\s\S]*?)\r\n--/.exec(day?.source ?? "")?.[1];
  // The last two sales belong to two days in Berlin.
  expect(Buffer.from(csv ?? "", "base64").toString()).toContain("2025-05-31,usd,sale,succeeded,,,2,24.99");
});

test("a mail server that is away costs a later try of the same mail, with the same id", async () => {
  const tasks = await tasksAt("2025-06-02T05:00:00Z", { REPORTS_MAIL: "daily-control" });
  server.refuseWith(451);
  await tasks["report-mail"]?.run(untilStopped);
  expect(await mailings()).toEqual([{ key: "day:2025-06-01", state: "due", attempts: 1, error: "451" }]);
  server.refuseWith(null);
  const ids = await database.db("reports.mailings").pluck("message_id");
  await tasks["report-mail-catch-up"]?.run(untilStopped);
  expect(server.mails).toEqual([]);
  await makeDue();
  await tasks["report-mail-catch-up"]?.run(untilStopped);
  expect(headerOf(server.mails[0]?.source ?? "", "Message-ID")).toBe(`<${ids[0]}>`);

  // As if the worker had died between sending and noting it.
  await database.db("reports.mailings").update({ state: "due" });
  await mirrorSales(database.db, [{ nth: 9, at: "2025-06-01T10:00:00Z", amount: 1 }]);
  await makeDue();
  await tasks["report-mail-catch-up"]?.run(untilStopped);
  const [first, again] = server.mails.map(({ source }) => ({
    id: headerOf(source, "Message-ID"),
    hash: /SHA-256 ([0-9a-f]{64})/.exec(source.replaceAll("=\r\n", ""))?.[1],
  }));
  expect(again).toEqual(first);
  expect(again?.hash).toHaveLength(64);
});

test("what would be refused again is given up, and so is what failed for two days", async () => {
  const tasks = await tasksAt("2025-06-02T05:00:00Z");
  server.refuseWith(550);
  await tasks["report-mail"]?.run(untilStopped);
  expect(await mailings()).toMatchObject([
    { state: "failed", error: "550" },
    { state: "failed", error: "550" },
  ]);
  server.refuseWith(451);
  await database.db("reports.mailings").update({ state: "due", ordered_at: "2020-01-01" });
  await makeDue();
  await tasks["report-mail-catch-up"]?.run(untilStopped);
  expect(await mailings()).toMatchObject([
    { state: "failed", error: "451" },
    { state: "failed", error: "451" },
  ]);
});

test("a time that passed while no worker ran is caught up, but not before the first mail ever", async () => {
  await (await tasksAt("2025-06-03T09:00:00Z"))["report-mail-catch-up"]?.run(untilStopped);
  expect(await mailings()).toEqual([]);
  await (await tasksAt("2025-06-03T05:00:00Z"))["report-mail"]?.run(untilStopped);
  await (await tasksAt("2025-06-04T04:59:00Z"))["report-mail-catch-up"]?.run(untilStopped);
  expect(await mailings()).toMatchObject([{ key: "day:2025-06-02" }, { key: "month:2025-05" }]);
  await (await tasksAt("2025-06-04T09:00:00Z"))["report-mail-catch-up"]?.run(untilStopped);
  expect(await mailings()).toMatchObject([
    { key: "day:2025-06-02" },
    { key: "day:2025-06-03", state: "sent" },
    { key: "month:2025-05" },
  ]);
});

test("without REPORTS_CRON there is nothing to run, and an unknown report is named", async () => {
  const env: Record<string, string | undefined> = environment();
  delete env["REPORTS_CRON"];
  delete env["REPORTS_MAIL_TO"];
  const log = createLog({ level: "silent", name: "test" });
  const runtime = createRuntime(allParts, loadConfig(env), log);
  runtimes.push(runtime);
  expect(await reportMailTasks(runtime)).toEqual({});
  await expect(tasksAt("2025-06-02T05:00:00Z", { REPORTS_MAIL: "daily-controll" })).rejects.toThrow(
    'REPORTS_MAIL: There is no report "daily-controll". Did you mean "daily-control"? "node src/bin/tallyhook.js report list" explains each.',
  );
});

test("report --mail-to mails one report now, which tries the settings", async () => {
  const send = (...args: string[]) =>
    runCommand(registerReport, ["report", "month-end", "--from", "2025-05", ...args], {
      env: environment(),
    });
  const { out, error } = await send("--mail-to", "ann@example.com", "--format", "xlsx");
  expect(error).toBeNull();
  expect(out).toBe("month-end was mailed to 1 address.\n");
  expect(server.mails[0]?.to).toEqual(["ann@example.com"]);
  expect(server.mails[0]?.source).toContain("filename=month-end_2025-05-01_2025-05-31.xlsx");
  expect((await send("--mail-to", "ann")).err).toContain("e-mail addresses separated by commas");
  expect((await send("--mail-to", "a@example.com", "--out", "x")).error).toMatchObject({
    message: "Use --out or --mail-to, not both.",
  });
  server.refuseWith(550);
  expect((await send("--mail-to", "ann@example.com")).error).toMatchObject({
    message: "The mail server did not accept the mail (550). Check SMTP_URL, MAIL_FROM and the addresses.",
    exitCode: 2,
  });
});
