import type { Knex } from "knex";
import { clear } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { writeMark } from "../marks.ts";
import { usualLimit } from "../rules/storms.ts";
import { countRecent, usualDeclines } from "../storm.ts";

/** Ends incidents whose crowd has passed. Needs a transaction; idempotent. */
export async function endStorms(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { withinMinutes } = desk.settings.rules.decline_storm;
  for (const family of ["declines", "dead"] as const) {
    const key = `storm:${family}`;
    const open = await trx("alerts.alerts")
      .where({ key })
      .whereNot("state", "resolved")
      .first<{ created_at: Date } | undefined>("created_at");
    if (open === undefined) continue;
    const { count } = await countRecent(trx, { family, withinMinutes });
    if (count > usualLimit(desk.settings, family, await usualDeclines(trx))) continue;
    const held = await heldSince(trx, family, open.created_at);
    const what =
      family === "declines"
        ? "Declines are back to their usual rate"
        : "No more events die in crowds";
    const title = `${what}: ${held} alerts were held back`;
    await clear(trx, desk, [{ key, title, at: desk.serviceClock.now() }], "sweep");
  }
}

async function heldSince(trx: Knex, family: "declines" | "dead", since: Date): Promise<number> {
  const rules =
    family === "declines"
      ? ["decline", "dunning_first", "dunning_renewal", "dunning_final"]
      : ["event_dead"];
  const { rows } = await trx.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from alerts.alerts a
     -- What opened the incident was held back as well, in whichever transaction it came.
     where a.created_at >= ?::timestamptz - interval '1 minute' and a.rule = any(?::text[]) and a.key not like 'storm:%'
       and not exists (select from alerts.outbox o where o.alert_id = a.id)`,
    [since, rules],
  );
  return Number(rows[0]?.n);
}

/**
 * Works out, once an hour, how many declines a window of this hour of the day usually brings: over the days of the
 * baseline, the hour before and the hour after taken in. Needs a transaction.
 */
export async function learnUsualDeclines(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { withinMinutes, baselineDays } = desk.settings.rules.decline_storm;
  const fresh = await trx("alerts.marks")
    .where("name", "usual-declines")
    .whereRaw("updated_at > now() - interval '1 hour'")
    .first("name");
  if (fresh !== undefined) return;
  const { rows } = await trx.raw<{ rows: { per_window: number | null }[] }>(
    `with known as (
       select least(?::float8, extract(epoch from now() - min(recorded_at)) / 86400) as days from alerts.history
     )
     -- Three hours of each day.
     select case when max(known.days) >= 1
              then count(h.id) / max(known.days) / (180.0 / ?) end::float8 as per_window
     from known left join alerts.history h on starts_with(h.stage, 'attempt:')
       and h.recorded_at > now() - make_interval(days => ?) and h.recorded_at < now() - interval '1 hour'
       and mod(extract(hour from h.recorded_at at time zone 'UTC')::int
             - extract(hour from now() at time zone 'UTC')::int + 25, 24) <= 2`,
    [baselineDays, withinMinutes, baselineDays],
  );
  await writeMark(trx, "usual-declines", { per_window: rows[0]?.per_window ?? null });
}
