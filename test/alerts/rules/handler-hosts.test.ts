import { beforeEach, describe, expect, test } from "vitest";
import { handlerHostDown, handlerQuarantined } from "../../../src/parts/alerts/rules/handler-hosts.ts";
import { type HostTrouble, noteTroubles, readDownHosts } from "../../../src/parts/delivery/dispatch/handler-hosts.ts";
import { contextOf } from "../../../src/parts/alerts/run-watch.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { standingClock, sweep, unresolved } from "../sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../test-alert-context.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyAlerts(database.db);
  await emptyTables(database.db, ["dispatch.hosts"]);
});

const minuteMs = 60_000;
const shared: HostTrouble = {
  files: ["src/handlers/receipts.ts", "src/handlers/mails.ts"],
  isApart: false,
  lastsMs: 2 * minuteMs,
  why: "it said nothing for 30 s after its start",
};
const apart: HostTrouble = {
  files: ["src/handlers/mails.ts"],
  isApart: true,
  lastsMs: 2 * minuteMs,
  why: "it exited with code 3, as by process.exit() in a handler",
};

const note = (supervisor: string, ...troubles: HostTrouble[]) => noteTroubles(database.db, supervisor, troubles);

async function swept(rules = {}): Promise<string[]> {
  const clock = standingClock("2026-11-01T12:00:00Z");
  const settings = settingsOf({ rules });
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  await sweep(database.db, alertContext, { questions: { downHosts: readDownHosts } });
  return (await unresolved(database.db)).filter((alert) => alert.startsWith("handler"));
}

const hostDown = "handler-host:shared critical open";
const quarantined = "handler-quarantined:src/handlers/mails.ts error open";

describe("the process that all handlers share", () => {
  test("is one alert of any number of workers, until none says that it is down", async () => {
    await note("a", shared);
    await note("b", shared);
    expect(await swept()).toEqual([hostDown]);
    await note("a");
    expect(await swept()).toEqual([hostDown]);
    await note("b");
    expect(await swept()).toEqual([]);
  });

  test("has the time of a restart before people are told", async () => {
    await note("a", { ...shared, lastsMs: 0.9 * minuteMs });
    expect(await swept()).toEqual([]);
    expect(await swept({ handler_host_down: { afterMinutes: 0 } })).toEqual([hostDown]);
  });

  test("is no longer told of when its worker was not heard of for a minute, and is forgotten after an hour", async () => {
    const { db } = database;
    const silentFor = (minutes: number) =>
      db.raw("update dispatch.hosts set seen_at = now() - make_interval(mins => ?)", [minutes]);
    await note("a", shared);
    expect(await swept()).toEqual([hostDown]);
    await silentFor(2);
    expect(await swept()).toEqual([]);
    await silentFor(61);
    await note("b", apart);
    expect(await db("dispatch.hosts").pluck("supervisor")).toEqual(["b"]);
    await silentFor(61);
    await note("b", apart);
    expect(await db("dispatch.hosts").pluck("supervisor")).toEqual(["b"]);
  });
});

describe("a file in a process apart", () => {
  test("is an alert of its own, beside the others that run, until it runs", async () => {
    const other = { ...apart, files: ["src/handlers/receipts.ts"], why: "its import failed" };
    await note("a", other, apart);
    expect(await swept()).toEqual([quarantined, "handler-quarantined:src/handlers/receipts.ts error open"]);
    await note("a", apart);
    expect(await swept()).toEqual([quarantined]);
    await note("a");
    expect(await swept()).toEqual([]);
  });
});

test("what is told of has the cause of who is down for longest, without secrets", async () => {
  await note("a", { ...shared, why: "its import failed (postgres://me:secret-word@db/x)" });
  await note("b", { ...shared, lastsMs: minuteMs });
  const hosts = await readDownHosts(database.db, { afterMinutes: 0 });
  expect(hosts).toMatchObject([{ supervisors: 2, isApart: false }]);
  expect(hosts[0]?.reason).toMatch(/^its import failed/);
  expect(hosts[0]?.reason).not.toContain("secret-word");
});

test("texts of files do not speak to the terminal, and long lists are cut", () => {
  const alertContext = testAlertContext();
  const files = Array.from({ length: 12 }, (_, n) => `a\u001b[2J${n}.ts`);
  const host = { files, isApart: false, downSince: new Date(), reason: "b\u0007", supervisors: 1 };
  const conditions = [
    ...handlerHostDown.begins([host], contextOf(alertContext, handlerHostDown)),
    ...handlerQuarantined.begins([{ ...host, isApart: true }], contextOf(alertContext, handlerQuarantined)),
  ];
  expect(conditions).toHaveLength(13);
  const read = conditions.flatMap(({ title, facts }) => [title, ...facts.map(({ value }) => value)]);
  expect(read.join("\n")).not.toMatch(/[\u0007\u001b]/);
  expect(read.join("\n")).toContain("and 2 more");
});
