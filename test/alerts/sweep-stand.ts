import type { Knex } from "knex";
import type { AlertContext } from "../../src/parts/alerts/alert-context.ts";
import { type SweepQuestions, sweepAlerts } from "../../src/parts/alerts/run-alerts.ts";
import { sweepQuestions } from "./sweep-questions.ts";
import { programmesNear } from "../../src/parts/reports/catalogue/network-monitor/programmes-near.ts";
import { createLog } from "../../src/platform/log.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { sendDue } from "./timeline-stand.ts";
import { testAlertContext } from "./test-alert-context.ts";

/**
 * Sweeps as a worker does, until there is no more; what failed in it fails the test. What is due is marked as sent,
 * unless a sender of the test's own sends it. `questions` are those of optional rooms.
 */
export async function sweep(
  db: Knex,
  alertContext: AlertContext,
  { sends = true, questions = {} }: { sends?: boolean; questions?: Partial<SweepQuestions> } = {},
): Promise<void> {
  const failures: string[] = [];
  const log = createLog({
    level: "warn",
    name: "test",
    destination: { write: (line: string) => void failures.push(line) },
  });
  const deps = { db, log, ...sweepQuestions, programmesNear, ...questions };
  while ((await sweepAlerts(deps, alertContext)).more);
  if (failures.length > 0) throw new Error(failures.join(""));
  if (sends) await sendDue(db);
}

/** A clock that stands until it is moved. */
export function standingClock(start: string) {
  let nowMs = Date.parse(start);
  return {
    now: () => new Date(nowMs),
    advanceHours: (hours: number) => void (nowMs += hours * 3_600_000),
    set: (time: string) => void (nowMs = Date.parse(time)),
  };
}

/** Unresolved alerts as `key severity state`. */
export async function unresolved(db: Knex): Promise<string[]> {
  const rows = await db("alerts.alerts")
    .whereNot("state", "resolved")
    .orderBy("key")
    .select<{ key: string; severity: string; state: string }[]>("key", "severity", "state");
  return rows.map(({ key, severity, state }) => `${key} ${severity} ${state}`);
}

/** Makes all that the mirror has recorded what the next sweep looks at: new, and settled. */
export async function looksBack(db: Knex): Promise<void> {
  await db("alerts.marks")
    .where("name", "states")
    .update({ value: JSON.stringify({ until: "2020-01-01" }) });
  await db.transaction(async (trx) => {
    // Only so may history be dated otherwise.
    await trx.raw("set local session_replication_role = replica");
    await trx("mirror.versions").update({ recorded_at: trx.raw("now() - interval '20 seconds'") });
  });
}

/** An alert context both of whose clocks stand. */
export function standing(start: string) {
  const clock = standingClock(start);
  return { clock, alertContext: testAlertContext({ clock, serviceClock: clock }) };
}

/** An event as the service sends it, each with an id of its own. */
export const event = (type: string, object: object, createdAt = "2025-03-01T12:00:00.000Z") => ({
  id: crypto.randomUUID(),
  type,
  created_at: createdAt,
  data: { object },
});

/** A renewal after its first decline; a retry follows a day later. */
export const declined = sampleOrder({
  id: "order-9",
  status: "failed",
  failure_code: "expired_card",
  subscription_id: "subscription-9",
  subscription_cycle: 2,
  attempt_count: 1,
  next_retry_at: "2025-03-02T12:00:00.000Z",
  transactions: [],
});
