import type { Knex } from "knex";
import { clear } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { writeMark } from "../marks.ts";
import { stormFamilies } from "../rules/storm-families.ts";
import { usualLimit } from "../rules/storms.ts";
import type { Family } from "../rules/story.ts";
import { countRecent, usualDeclines } from "../storm.ts";

/**
 * Ends incidents whose crowd has passed: below half of what opened them, so that a rate about the limit is one incident
 * and not many. Needs a transaction; idempotent.
 */
export async function endStorms(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { withinMinutes } = desk.settings.rules.decline_storm;
  for (const { family, since } of await openStorms(trx)) {
    const { count } = await countRecent(trx, { family, withinMinutes });
    const limit = usualLimit(desk.settings, family, await usualDeclines(trx));
    if (count > limit / 2) continue;
    const held = await heldSince(trx, family, since);
    const title = `${stormFamilies[family].end}: ${held} alerts were held back`;
    await clear(
      trx,
      desk,
      [{ key: `storm:${family}`, title, at: desk.serviceClock.now() }],
      "sweep",
    );
  }
}

async function openStorms(trx: Knex): Promise<{ family: Family; since: Date }[]> {
  const families = Object.keys(stormFamilies) as Family[];
  const rows = await trx("alerts.alerts")
    .whereIn(
      "key",
      families.map((family) => `storm:${family}`),
    )
    .whereNot("state", "resolved")
    .orderBy("key")
    .select<{ key: string; created_at: Date }[]>("key", "created_at");
  return rows.flatMap(({ key, created_at: since }) => {
    const family = families.find((each) => key === `storm:${each}`);
    return family === undefined ? [] : [{ family, since }];
  });
}

/** How many alerts of the family changed since then and were told nowhere. One statement. */
async function heldSince(trx: Knex, family: Family, since: Date): Promise<number> {
  const { stages, keys } = stormFamilies[family];
  const { rows } = await trx.raw<{ rows: { n: string }[] }>(
    `select count(distinct h.alert_id) as n from alerts.history h join alerts.alerts a on a.id = h.alert_id
     -- What opened the incident was held back as well, in whichever transaction it came.
     where h.recorded_at >= :since::timestamptz - interval '1 minute' and starts_with(h.stage, :stages)
       and exists (select from unnest(:keys::text[]) p where starts_with(a.key, p))
       and not exists (select from alerts.outbox o
                       where o.alert_id = a.id and o.created_at >= :since::timestamptz - interval '1 minute')`,
    { since, stages, keys: [...keys] },
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
