import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { homePages, renderHome } from "../../src/app/dashboard/pages/home/home-routes.ts";
import type { PageGroup } from "../../src/app/dashboard/page-group.ts";
import type { PageDeps, PageRequest } from "../../src/app/dashboard/route.ts";
import { permissionsOf } from "../../src/app/people/permissions.ts";
import { html } from "../../src/platform/html.ts";
import { createLog } from "../../src/platform/log.ts";
import { beat, leave } from "../../src/parts/reconcile/runs/run-orders.ts";
import { type HostileService, startHostileService } from "../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { recordBeat } from "../../src/core/receiver/heartbeats.ts";
import { storeEvent } from "../worker/worker-stand.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

let service: HostileService;
let stand: ReconcileStand;
let dashboard: DashboardStand;
let cookie: string;

beforeAll(async () => {
  service = await startHostileService(6);
  stand = await createReconcileStand(service.url);
  dashboard = await openDashboard(stand.database);
  dashboard.clock.set(new Date());
  ({ cookie } = await signedIn(stand.database.db, ["viewer"], { now: new Date() }));
});
afterAll(async () => {
  await dashboard.close();
  await stand.close();
  await service.close();
});

const words = (text: string): string =>
  text
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll(/\s+/g, " ");
/** At another time, by somebody who has just signed in. */
async function at(daysAhead: number): Promise<void> {
  dashboard.clock.set(new Date(Date.now() + daysAhead * 86_400_000));
  const signed = await signedIn(stand.database.db, ["viewer"], { now: dashboard.clock.now() });
  ({ cookie } = signed);
}
const home = async () => words(await (await send(`${dashboard.url}/`, { cookie })).text());
const quiet = "Nothing needs attention";

describe("home", () => {
  test("of a new deployment says what to do first, and no wall of zeros", async () => {
    const text = await home();
    expect(text).toContain("node src/bin/tallyhook.js import");
    expect(text).toContain("node src/bin/tallyhook.js endpoint register");
    expect(text).not.toContain(quiet);
    expect(text).not.toContain("Proved");
    expect(text).not.toContain("Nothing open");
  });

  test("says first until when each list is proved, and that something needs somebody while no worker runs", async () => {
    await stand.run();
    const text = await home();
    expect(text).toMatch(
      /Proved equal until \d{4}-\d\d-\d\d \d\d:\d\d UTC Customers, Orders, Transactions, Subscriptions : proved equal until/,
    );
    expect(text).toContain("2 things need attention No webhook has ever arrived");
    expect(text).toContain("No worker runs");
    expect(text).not.toContain(quiet);
  });

  test("says that nothing is to be done only when all is proved and a worker runs", async () => {
    const { db } = stand.database;
    await storeEvent(db, "order.paid", { id: "order-0001" }, new Date().toISOString());
    await beat(db);
    expect(await home()).toContain(quiet);
    await at(3);
    expect(await home()).toContain("Every list: nothing proves the last 3 days");
    await at(60);
    expect(await home()).toContain("Not proved any more");
    await at(0);
    await leave(db);
  });

  test("does not say that all is well while no receiver takes webhooks", async () => {
    const { db } = stand.database;
    await beat(db);
    await recordBeat(db, "receiver:1:a", { isReady: true, hasAnswered: true });
    expect(await home()).toContain(quiet);
    await db.raw(
      "update receiver.heartbeats set ready_at = now() - interval '6 minutes', beat_at = now() - interval '6 minutes'",
    );
    const text = await home();
    expect(text).toMatch(/No receiver has answered since \d{4}-\d\d-\d\d \d\d:\d\d UTC: none runs\. What to do/);
    expect(text).not.toContain(quiet);
    await db("receiver.heartbeats").delete();
    await leave(db);
  });

  test("names what differs, with the money at risk, until it is accepted", async () => {
    const { db } = stand.database;
    await beat(db);
    const id = service.objects["orders"]?.[1]?.id ?? "";
    await db("mirror.orders")
      .where({ id })
      .update({
        total: 1,
        version: db.raw("'2000' || substr(version, 5)"),
      });
    await stand.run({ kind: "full" }, { reportOnly: true });
    const text = await home();
    expect(text).toContain("1 object differs from the service");
    expect(text).toMatch(/Orders : proved until .*, but 1 object differs \(10.00 USD at risk\)/);
    expect(text).toContain("Orders: 1 object differs from the service.");
    expect(text).not.toContain(quiet);
    await db("reconcile.findings").update({ state: "acknowledged" });
    const accepted = await home();
    expect(accepted).toMatch(/Orders : proved equal until [^.]*, except for 1 accepted difference/);
  });
});

describe("a card", () => {
  const group = (read: () => Promise<never>): PageGroup => ({
    place: { path: "/x", name: "Broken", access: "status:read", area: "Plumbing" },
    routes: [],
    summary: { access: "status:read", read },
  });
  const body = async (groups: readonly PageGroup[]) => {
    const [route] = homePages(groups, {}).routes;
    const deps = {
      db: stand.database.db,
      clock: dashboard.clock,
      serviceClock: dashboard.clock,
      log: createLog({ level: "silent", name: "test" }),
      timeZone: "UTC",
    } as PageDeps;
    const visitor = { permissions: permissionsOf(["viewer"]) } as PageRequest["visitor"];
    const answer = await route?.answer(deps, { visitor } as PageRequest);
    return answer?.kind === "page" ? words(answer.body.markup) : "";
  };

  test("that fails, or takes too long, is unknown, and home does not say that all is well", async () => {
    await stand.database.db("reconcile.findings").delete();
    await stand.run();
    expect(await body([])).toContain(`${quiet}.`);
    const failed = await body([group(() => Promise.reject(new Error("no table")))]);
    expect(failed).toContain("Broken Unknown");
    expect(failed).not.toContain(quiet);
    const hung = await body([group(() => new Promise(() => {}))]);
    expect(hung).toContain("Broken: this could not be read");
  });
});

test("home says that there is more than this person may see", () => {
  const trust = { tone: "good", body: html`Proved`, reasons: [] } as const;
  const beginning = { hasWorker: true, hasEvents: true, hasObjects: true, hasRun: true };
  const shown = (seesAll: boolean) => words(renderHome({ trust, beginning, cards: [], seesAll }).markup);
  expect(shown(true)).toContain(`${quiet}.`);
  expect(shown(false)).toContain(`${quiet}, as far as your roles let you see.`);
});

test("home does not say that all is well while it is unknown whether webhooks come", () => {
  const trust = { tone: "good", body: html`Proved`, reasons: [] } as const;
  const { markup } = renderHome({ trust, beginning: null, cards: [], seesAll: true });
  expect(markup).not.toContain(quiet);
});

test("home does not say that all is well while the proof itself cannot be read", () => {
  const { markup } = renderHome({ trust: null, beginning: null, cards: [], seesAll: true });
  expect(markup).not.toContain(quiet);
  expect(words(markup)).toContain("It is not known whether the mirror is proved");
});
