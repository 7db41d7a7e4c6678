import { beforeEach, expect, test } from "vitest";
import { registerCustomers } from "../../../src/main/cli/customers.ts";
import { wallClock } from "../../../src/platform/clock.ts";
import { allReports } from "../../../src/parts/reports/catalogue/all.ts";
import { writeReport } from "../../../src/parts/reports/write-report.ts";
import { runCommand } from "../../main/cli/command-line.ts";
import { letTimePass } from "../../reports/sandbox-history.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyMirror } from "../copies.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "../samples.ts";
import type { Snapshot } from "../../../src/core/mirror/snapshot.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["mirror.erasures"]);
});

/** Everything that any report says as of each of these times, but the time at which it was written. */
async function figures(times: readonly string[]): Promise<string[]> {
  const { db } = database;
  const said: string[] = [];
  for (const asOf of times) {
    for (const report of allReports) {
      let text = "";
      await writeReport(
        {
          db,
          clock: wallClock,
          timeZone: "UTC",
          region: "global",
          write: (part) => Promise.resolve(void (text += String(part))),
        },
        {
          from: "2025-03-01",
          to: "2025-03-31",
          currency: undefined,
          accounts: undefined,
          report,
          format: "json",
          asOf: new Date(asOf),
        },
      );
      said.push(`${asOf} ${report.name}: ${text.replaceAll(/"generated_at":"[^"]*"/g, "")}`);
    }
  }
  return said;
}

const about = (who: string, status: string, changed: number): object[] => [
  sampleCustomer({ first_name: who, updated_at: at(changed) }),
  sampleOrder({
    status,
    description: who,
    subscription_id: "subscription-1",
    subscription_cycle: 1,
    updated_at: at(changed),
    transactions: [sampleEntry({ failure_reason: who, updated_at: at(changed) })],
  }),
  sampleTransaction({ metadata: { who }, updated_at: at(changed) }),
  sampleSubscription({
    metadata: { who },
    status: status === "failed" ? "past_due" : "active",
    updated_at: at(changed),
  }),
];
const resources = ["customer", "order", "transaction", "subscription"] as const;
type See = (resource: (typeof resources)[number], object: Record<string, unknown>) => Snapshot;
const observed = (objects: object[], see: See): Snapshot[] =>
  objects.map((object, n) => see(resources[n] ?? "customer", object as Record<string, unknown>));

test.each<[string, (status: string, changed: number) => object[][]]>([
  [
    "differed in the person's data alone",
    (status, changed) => [about("Jane", status, changed), about("Janet", status, changed)],
  ],
  [
    "stood beside a third of the same time",
    (status, changed) => [
      about("Jane", status, changed),
      about("Ann", status === "failed" ? "succeeded" : "failed", changed),
      about("Janet", status, changed),
    ],
  ],
])("reports as of any time say the same after an erasure, though states %s", async (_, states) => {
  const { db } = database;
  const [failed, succeeded] = [states("failed", 0), states("succeeded", 60)];
  const steps = [
    ...failed.map((objects) => observed(objects, (resource, object) => shown(resource, object))),
    observed(failed.at(-1) ?? [], (resource, object) => seen(resource, object, 9)),
    ...succeeded.map((objects) => observed(objects, (resource, object) => shown(resource, object))),
    observed(succeeded.at(-1) ?? [], (resource, object) => seen(resource, object, 90)),
    // A read that shows another text, of the same time.
    observed(about("Joan", "succeeded", 60), (resource, object) => seen(resource, object, 120)),
    observed(about("June", "refunded", 600), (resource, object) => seen(resource, object, 900)),
  ];
  for (const step of steps) {
    await apply(db, ...step);
    await letTimePass(db, "10 minutes");
  }
  const now = Date.now();
  const times = steps.map((_step, n) => new Date(now - (n * 10 + 5) * 60_000).toISOString());
  const before = await figures(times);
  expect(new Set(before.map((each) => each.replace(/^\S+/, ""))).size).toBeGreaterThan(12);
  const stateCount = await db("mirror.versions").count();

  const { error } = await runCommand(registerCustomers, ["customers", "erase", "customer-1", "--yes", "--by", "ada"], {
    env: database.environment,
  });
  expect(error).toBeNull();
  expect(JSON.stringify(await db("mirror.versions"))).not.toMatch(/Jane|Joan|June|Ann/);
  expect(await figures(times)).toEqual(before);
  expect(await db("mirror.versions").count()).toEqual(stateCount);
});
