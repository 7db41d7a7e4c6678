import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { storable } from "../platform/storable-text.ts";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import type { Condition } from "./rules/condition.ts";
import { headlineText, short, withoutIds } from "./rules/wording.ts";
import type { AlertSettings } from "./settings.ts";

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

/** Something that the interface does not name, seen for the first time. It was kept verbatim. Pure. */
export function noveltyCondition(
  rules: AlertSettings["rules"],
  { kind, value }: { kind: string; value: string },
  at: Date,
): Condition {
  const what = places[kind] ?? kind;
  return {
    key: `new-value:${kind}:${value}`,
    rule: "event_unknown",
    severity: rules.event_unknown.severity,
    title: headlineText({ lead: `Unknown ${what}`, cause: short(withoutIds(value)) }),
    advice:
      "It was stored as it came; nothing is lost. Read in the service's changelog what it means, and change " +
      "rules or reports that should " +
      'know it. It is told once: "npx tallyhook alerts ack" when that is done.',
    facts: [{ label: what, value }],
    kept: { kind, value },
    family: "new-values",
    at,
  };
}

const places: Readonly<Record<string, string>> = {
  "event.type": "event type",
  "event.api_version": "schema version of events",
  "order.status": "status of orders",
  "order.currency": "currency of orders",
  "order.field": "field of orders",
  "order.failure_code": "decline code",
  "subscription.status": "status of subscriptions",
  "subscription.currency": "currency of subscriptions",
  "subscription.field": "field of subscriptions",
  "transaction.status": "status of transactions",
  "transaction.currency": "currency of transactions",
  "transaction.field": "field of transactions",
  "customer.field": "field of customers",
};
