import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import type { AlertDesk } from "../desk.ts";
import { knownFields, knownTransactionStatuses } from "../known-fields.ts";
import { readMark, writeMark } from "../marks.ts";
import { reportNovelties } from "../novelties.ts";
import type { Novelties } from "../novelties.ts";

/** In one step. What is new is seen again: a change of the interface does not come once. */
const maxStates = 20_000;
/** A state is dated before it is committed. */
const settledAfterSeconds = 15;

interface Seen {
  kind: string;
  value: string;
  /** Only the first fill showed it. */
  only_import: boolean;
}

/**
 * Looks through the states that the mirror recorded since the last time for fields, and statuses of transactions, that
 * the interface does not name. Apart from applying, which does not pay for it. Needs a transaction.
 */
export async function lookThroughStates(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const mark = await readMark<{ until: string }>(trx, "states");
  const until = await settledUntil(trx);
  await writeMark(trx, "states", { until });
  if (mark === null) return;
  const seen = (await findSeen(trx, mark.until, until)).filter((one) => !isKnown(one));
  await reportNovelties(trx, desk, byKind(seen.filter((one) => one.only_import)), "import");
  await reportNovelties(trx, desk, byKind(seen.filter((one) => !one.only_import)), "sweep");
}

async function settledUntil(trx: Knex): Promise<string> {
  const { rows } = await trx.raw<{ rows: { until: string }[] }>(
    "select (now() - make_interval(secs => ?))::text as until",
    [settledAfterSeconds],
  );
  return rows[0]?.until ?? "";
}

/** The names of fields, and the statuses of transactions, in states of this time. One statement. */
async function findSeen(trx: Knex, from: string, until: string): Promise<Seen[]> {
  const { rows } = await trx.raw<{ rows: Seen[] }>(
    `with recent as materialized (
       select split_part(resource, '.', 1) as resource, data, cause = 'import' as is_import from mirror.versions
       where recorded_at > :from::timestamptz and recorded_at <= :until::timestamptz
         and (resource = any(:resources::text[]) or resource = 'transaction.inline') limit :maxStates
     )
     select kind, value, bool_and(is_import) as only_import from (
       select resource || '.field' as kind, left(field, 200) as value, is_import
       from recent cross join lateral jsonb_object_keys(data) field
       union all
       select 'transaction.status', left(data->>'status', 200), is_import from recent
       where resource = 'transaction' and data->>'status' is not null) shown
     group by kind, value order by kind, value`,
    { from, until, resources: sqlArray(Object.keys(knownFields)), maxStates },
  );
  return rows;
}

function isKnown({ kind, value }: Seen): boolean {
  if (kind === "transaction.status") return knownTransactionStatuses.has(value);
  return knownFields[kind.replace(/\.field$/, "")]?.has(value) === true;
}

function byKind(seen: readonly Seen[]): Novelties {
  const found = new Map<string, Set<string>>();
  for (const { kind, value } of seen) {
    const values = found.get(kind);
    if (values === undefined) found.set(kind, new Set([value]));
    else values.add(value);
  }
  return found;
}
