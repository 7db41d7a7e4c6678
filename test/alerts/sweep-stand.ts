import type { Knex } from "knex";
import type { AlertDesk } from "../../src/alerts/desk.ts";
import { sweepAlerts } from "../../src/alerts/sweep.ts";
import { createLog } from "../../src/platform/log.ts";
import { sendDue } from "./story-stand.ts";

/** Sweeps as a worker does, until there is no more; what failed in it fails the test. */
export async function sweep(db: Knex, desk: AlertDesk): Promise<void> {
  const failures: string[] = [];
  const log = createLog({
    level: "warn",
    name: "test",
    destination: { write: (line: string) => void failures.push(line) },
  });
  while ((await sweepAlerts({ db, log }, desk)).more);
  if (failures.length > 0) throw new Error(failures.join(""));
  await sendDue(db);
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
