import type { Knex } from "knex";
import type { Breach, Identity } from "./identity.ts";

/** Of a fault that is everywhere the first thousand tell as much as the rest, and a person can read no more. */
const mostBreaches = 1_000;

export interface BreachesFound {
  /** Those with the most money at risk, at most `mostBreaches`. */
  breaches: Breach[];
  /** How many there are in all. */
  total: number;
}

interface BreachRow {
  resource: Breach["resource"];
  id: string;
  currency: string | null;
  at_risk: string | null;
  at: string | null;
  expected: string;
  found: string;
  total: string;
}

/** The subjects of which an identity does not hold. Needs the transaction in which the facts were gathered. */
export async function findBreaches(
  trx: Knex.Transaction,
  { subject, breaches }: Identity,
): Promise<BreachesFound> {
  const { rows } = await trx.raw<{ rows: BreachRow[] }>(
    `select coalesce(to_jsonb(breach)->>'resource', cast(:subject as text)) as resource, id, currency, at_risk,
            expected, found, count(*) over () as total,
            coalesce(to_jsonb(breach)->>'at', case cast(:subject as text) when 'day' then cast(
              cast(left(id, 10) as timestamp) at time zone (select time_zone from moment) as text) end) as at
     from (${breaches}) breach order by at_risk desc nulls last, id limit :most`,
    { subject, most: mostBreaches },
  );
  return {
    breaches: rows.map((row) => ({
      resource: row.resource,
      id: row.id,
      currency: row.currency,
      at: row.at,
      atRiskMinor: row.at_risk === null ? null : BigInt(row.at_risk),
      expected: row.expected,
      found: row.found,
    })),
    total: Number(rows[0]?.total ?? 0),
  };
}

/**
 * Which of the objects with an unhealed finding were looked at now, so that not to be found again means to be
 * healed. Needs the same transaction.
 */
export async function findExamined(
  trx: Knex.Transaction,
  { name, examined }: Identity,
): Promise<string[]> {
  const looked =
    examined === undefined
      ? `not exists (select from in_flight i where i.resource = f.resource and i.id = f.object_id)`
      : `f.object_id in (${examined})`;
  const { rows } = await trx.raw<{ rows: { key: string }[] }>(
    `select f.key from reconcile.findings f
     where f.class = 'identity' and f.identity = :name and f.state <> 'healed' and ${looked}`,
    { name },
  );
  return rows.map(({ key }) => key);
}
