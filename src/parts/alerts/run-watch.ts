import type { Knex } from "knex";
import { type AlertContext, type FoundBy, wordingOf, zoneOf } from "./alert-context.ts";
import type { Begun } from "./condition.ts";
import { clearRule, raise } from "./raise-conditions.ts";
import type { AlertSettings, RuleName } from "./settings.ts";
import { readWatermark, writeWatermark } from "./store.ts";
import type { Condition } from "./timeline.ts";
import type { Watch, WatchContext, Watched } from "./watch.ts";

/** Polls once: ends conditions that are over, then opens and updates true ones. Needs a transaction; idempotent. */
export async function runWatch(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  watch: Watch<RuleName>,
  questions: object = {},
): Promise<void> {
  const { rule, graceMs = 0, everyMs } = watch;
  if (everyMs !== undefined && !(await becomesDue(trx, `watch:${rule}`, everyMs))) return;
  const context = contextOf(alertContext, watch, await readWatched(trx, alertContext.clock.now()));
  const found = await watch.poll(trx, context, questions);
  if (found === null) return;
  await clearRule(trx, alertContext, { rule, at: context.at, endOf: found.endOf }, "sweep");
  if (context.watched.steadyMs < graceMs) return;
  await raise(trx, alertContext, conditionsOf(watch, found.begun, context), "sweep");
}

/** Raises a watch's condition that was found outside of a sweep. Needs a transaction; idempotent. */
export async function raiseFound<Found>(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  watch: Watch<RuleName> & { begins(found: Found, context: WatchContext): Begun[] },
  found: Found,
  foundBy: FoundBy,
): Promise<void> {
  const context = contextOf(alertContext, watch);
  await raise(trx, alertContext, conditionsOf(watch, watch.begins(found, context), context), foundBy);
}

/** Used before the first sweep. */
const neverWatched = (now: Date): Watched => ({ first: now, everMs: 0, steadyMs: 0, gapMs: Infinity });

/** The context of a watch. */
export function contextOf<Rule extends RuleName>(
  alertContext: AlertContext,
  { rule, clock }: Pick<Watch<Rule>, "rule" | "clock">,
  watched: Watched = neverWatched(alertContext.clock.now()),
): WatchContext<AlertSettings["rules"][Rule]> {
  const { rules, ...wording } = wordingOf(alertContext);
  return {
    ...wording,
    settings: rules[rule],
    at: (clock === "service" ? alertContext.serviceClock : alertContext.clock).now(),
    timeZone: zoneOf(alertContext),
    networkRegion: alertContext.networkRegion,
    watched,
  };
}

/** The conditions that a watch reports as begun. */
export const conditionsOf = (
  { rule }: Pick<Watch<RuleName>, "rule">,
  begun: readonly Begun[],
  { settings: { severity }, at }: WatchContext<Pick<AlertSettings["rules"][RuleName], "severity">>,
): Condition[] => begun.map((one) => ({ rule, severity, at, ...one }));

/** Whether a watch has not polled for so long, by the database's clock; then records that it polls now. */
async function becomesDue(trx: Knex, name: string, everyMs: number): Promise<boolean> {
  const isFresh = "updated_at > now() - make_interval(secs => ?)";
  const fresh = await trx("alerts.marks")
    .where({ name })
    .whereRaw(isFresh, [everyMs / 1_000])
    .first("name");
  if (fresh === undefined) await writeWatermark(trx, name, {});
  return fresh === undefined;
}

interface Mark {
  first: string;
  since: string;
  seen: string;
  /** Null, or missing in marks of an earlier release: unknown. */
  gapMs?: number | null;
}

/** Records that a sweep runs now, and since when sweeps have been steady. Needs a transaction. */
export async function keepWatch(trx: Knex.Transaction, { clock, settings }: AlertContext): Promise<void> {
  const now = clock.now();
  const last = await readWatermark<Mark>(trx, "watch");
  // A clock that ran ahead leaves future times when it is set right. Without this, no absence would be found until
  // then.
  const gapMs = last === null ? null : Math.abs(now.getTime() - Date.parse(last.seen));
  const isGap = gapMs === null || gapMs > settings.rules.silence_worker.afterMinutes * 60_000;
  const first = last === null || Date.parse(last.first) > now.getTime() ? now : new Date(last.first);
  const since = last === null || isGap ? now : new Date(last.since);
  await writeWatermark(trx, "watch", { first, since, seen: now, gapMs });
}

/** For how long sweeps have been watching. One statement. */
async function readWatched(db: Knex, now: Date): Promise<Watched> {
  const mark = await readWatermark<Mark>(db, "watch");
  if (mark === null) return neverWatched(now);
  const first = new Date(mark.first);
  const everMs = now.getTime() - first.getTime();
  return { first, everMs, steadyMs: now.getTime() - Date.parse(mark.since), gapMs: mark.gapMs ?? Infinity };
}
