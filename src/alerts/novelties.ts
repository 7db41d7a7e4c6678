import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { storable } from "../platform/storable-text.ts";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { noveltyCondition } from "./rules/events.ts";

/** Values that the interface does not name, by the place where they stood. */
export type Novelties = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Tells of each value that was never seen before, once for all time. A first fill only remembers them. Needs a
 * transaction; costs nothing where there are none.
 */
export async function reportNovelties(
  trx: Knex.Transaction,
  desk: AlertDesk,
  novelties: Novelties,
  foundBy: FoundBy,
): Promise<void> {
  const values = [...novelties].flatMap(([kind, seen]) =>
    [...seen].map((value) => ({ kind, value: storable(value.slice(0, 200)) })),
  );
  if (values.length === 0) return;
  const fresh = await remember(trx, values);
  if (foundBy === "import") return;
  const at = desk.serviceClock.now();
  const conditions = fresh.map((novelty) => noveltyCondition(desk.settings.rules, novelty, at));
  await raise(trx, desk, conditions, foundBy);
}

/** Gives back those that were not known. One statement; of two transactions that see a value first, one gets it. */
export async function remember(
  trx: Knex,
  values: readonly { kind: string; value: string }[],
): Promise<{ kind: string; value: string }[]> {
  const { rows } = await trx.raw<{ rows: { kind: string; value: string }[] }>(
    `insert into alerts.seen_values (kind, value)
     select distinct g.kind, g.value from unnest(?::text[], ?::text[]) as g(kind, value)
     where not exists (select from alerts.seen_values s where s.kind = g.kind and s.value = g.value)
     order by 1, 2 on conflict do nothing returning kind, value`,
    [sqlArray(values.map(({ kind }) => kind)), sqlArray(values.map(({ value }) => value))],
  );
  return rows;
}
