import type { Knex } from "knex";
import { isCatchingUp } from "../../../core/mirror/restores.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { instantsOf, localTimeIn } from "../../../platform/local-time.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText, reconcileAfterMissedWebhooks } from "./wording.ts";

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/** No events in an hour that is usually busy. */
export const missingEvents = watch({
  rule: "silence_events",
  about: 'No events in an hour that usually brings at least "usuallyAtLeast" (in most of the last "weeks" weeks).',
  severity: "critical",
  settings: { usuallyAtLeast: count(1, 1_000_000, 10), weeks: count(1, 12, 4) },
  clock: "service",
  async read(db, { settings, at, timeZone }) {
    // Two hours are compared, and their clocks may have changed by one since.
    const since = new Date(at.getTime() - settings.weeks * weekMs - 3 * hourMs);
    const hour = hourWithoutEvents(await findEventHours(db, since), settings, at, timeZone);
    return hour !== null && ((await isCatchingUp(db)) || !(await isInboxScanned(db))) ? null : { hour };
  },
  begins: ({ hour }, { localTime, shortTime }) =>
    hour && {
      key: "silence:events",
      title: headlineText({ lead: `No webhooks since ${shortTime(hour)}`, cause: "this hour usually brings them" }),
      advice:
        `Check in this order: "${tallyhook("endpoint list")}" (is it enabled, is the address right?), the ` +
        "receiver's /readyz, the proxy and the network in front of it, the service's status page. When webhooks " +
        `arrive again, run "${tallyhook("reconcile")}". It corrects the mirror where webhooks were missed.`,
      facts: [{ label: "No webhooks since", value: localTime(hour) }],
      storedFacts: { since: hour.toISOString() },
    },
  end: { title: "Webhooks arrive again", advice: `${reconcileAfterMissedWebhooks}.` },
  samples: ({ at }) => ({ "no webhooks": { hour: new Date(at.getTime() - 2 * hourMs) } }),
});

/** Hours by the service's clock, with their numbers of events. An absent hour had none. */
interface EventHour {
  hour: Date;
  events: number;
}

/**
 * Whether the last full hour and the current one brought no events, though the same hour of the week usually does: in
 * most of the weeks compared, and in at least two. It must do so by UTC and by the clock of `timeZone`, since a job
 * follows one of them, and they differ after a clock change. Returns the hour without events.
 */
export function hourWithoutEvents(
  hours: readonly EventHour[],
  { usuallyAtLeast, weeks }: { usuallyAtLeast: number; weeks: number },
  now: Date,
  timeZone: string,
): Date | null {
  const events = new Map(hours.map(({ hour, events: n }) => [hour.getTime(), n]));
  const current = Math.floor(now.getTime() / hourMs) * hourMs;
  const last = current - hourMs;
  if ((events.get(last) ?? 0) > 0 || (events.get(current) ?? 0) > 0) return null;
  const local = localTimeIn(timeZone)(new Date(last));
  const isBusy = (at: number) => (events.get(Math.floor(at / hourMs) * hourMs) ?? 0) >= usuallyAtLeast;
  let busy = 0;
  for (let week = 1; week <= weeks; week++) {
    const [sameLocal] = instantsOf({ ...local, day: local.day - 7 * week }, timeZone);
    const then = last - week * weekMs;
    if (isBusy(then) && isBusy(sameLocal?.getTime() ?? then)) busy++;
  }
  return busy >= Math.max(Math.min(2, weeks), weeks / 2) ? new Date(last) : null;
}

/** The number of events in each hour since then, by the service's clock. One statement. */
const findEventHours = async (db: Knex, since: Date): Promise<EventHour[]> => {
  const rows = await db("alerts.event_hours")
    .where("hour", ">=", since)
    .select<{ hour: Date; events: string }[]>("hour", "events");
  return rows.map(({ hour, events }) => ({ hour, events: Number(events) }));
};

/** Whether the inbox scan has caught up. Events that it has not seen may belong to any hour. One statement. */
async function isInboxScanned(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { left: boolean }[] }>(
    `select exists (
       select from inbox.receipts
       where seq > coalesce((select (value->>'seq')::bigint from alerts.marks where name = 'inbox'), 0)) as left`,
  );
  return rows[0]?.left !== true;
}
