import type { Knex } from "knex";
import { applyStates } from "../../../core/mirror/write/apply.ts";
import { mirrorResources, resourceNamed } from "../../../core/mirror/resources.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { driftKey } from "../findings/drift-findings.ts";
import { type Finding, type FoundIn, healFindings, recordFindings } from "../findings/findings.ts";
import { boundText } from "../coverage/slice.ts";

export interface TombstoneLimits {
  maxTombstones: number;
  maxTombstoneShare: number;
}

/** The number of absent objects in one run above which a wrong key is the better explanation. */
export async function absenceLimit(
  db: Knex,
  run: number,
  { maxTombstones, maxTombstoneShare }: TombstoneLimits,
): Promise<number> {
  const row = await db("reconcile.coverage").where({ run }).first<{ rows: string | null }>(db.raw("sum(rows) as rows"));
  return Math.max(maxTombstones, Math.floor(Number(row.rows ?? 0) * maxTombstoneShare));
}

/** Counts the objects that the service did not know, once or twice. */
export async function countAbsent(db: Knex, run: number): Promise<number> {
  const row = await db("reconcile.doubts")
    .where({ run })
    .whereNotNull("missing_since")
    .first<{ n: string }>(db.raw("count(*) as n"));
  return Number(row.n);
}

/**
 * Ends a run in which too many objects are absent: none of its absences counts. The rechecks still waiting are
 * concluded too, so that the run is not resumed.
 */
export async function discardAbsences(db: Knex, run: number): Promise<void> {
  await db("reconcile.doubts")
    .where({ run })
    .whereNot("state", "settled")
    .update({ state: "settled", outcome: "not concluded" });
}

interface Absent {
  resource: Resource;
  id: string;
  missing_since: Date;
  due_at: Date;
  amount: string | null;
  currency: string | null;
}

/**
 * Concludes the objects that the service did not know twice, a grace apart. A customer can be deleted permanently: it
 * gets a tombstone, found and healed. No other object can be deleted: the finding stays open. Needs a transaction;
 * returns the number of objects.
 */
export async function concludeAbsent(
  trx: Knex.Transaction,
  { run, cause, reportOnly }: { run: number; cause: string; reportOnly: boolean },
): Promise<number> {
  const absent = await absentObjects(trx, run);
  if (absent.length === 0) return 0;
  const seenAt = new Date(Math.max(...absent.map(({ due_at }) => due_at.getTime())));
  const sighting: FoundIn = { run, seenAt };
  await recordFindings(trx, sighting, absent.map(asFinding));
  for (const { name, table, absence } of reportOnly ? [] : mirrorResources) {
    const deleted = absent.filter(({ resource }) => resource === name);
    if (absence === undefined || deleted.length === 0) continue;
    await applyStates(
      trx,
      deleted.map(({ id, due_at }) => absence.state(id, boundText(due_at), cause)),
    );
    const ids = deleted.map(({ id }) => id);
    // A tombstone that is not later than the row's state has no effect: its finding stays open.
    const gone = await trx(`mirror.${table}`).whereIn("id", ids).whereNotNull("deleted_at").pluck<string[]>("id");
    const keys = gone.map((id) => driftKey("missing_there", name, id));
    await healFindings(trx, sighting, keys);
  }
  return trx("reconcile.doubts").where({ run, state: "absent" }).update({ state: "settled", outcome: "missing_there" });
}

const withAmount = mirrorResources.filter(({ amount }) => amount !== undefined);

async function absentObjects(trx: Knex, run: number): Promise<Absent[]> {
  const { rows } = await trx.raw<{ rows: Absent[] }>(
    `select d.resource, d.id, d.missing_since, d.due_at,
            coalesce(${withAmount.map(({ name, amount }) => `${name}_row.${amount}`).join(", ")}) as amount,
            coalesce(${withAmount.map(({ name }) => `${name}_row.currency`).join(", ")}) as currency
     from reconcile.doubts d
     ${withAmount
       .map(
         ({ name, table }) =>
           `left join mirror.${table} ${name}_row on d.resource = '${name}' and ${name}_row.id = d.id`,
       )
       .join(" ")}
     where d.run = ? and d.state = 'absent'`,
    [run],
  );
  return rows;
}

const canBeDeleted = (resource: Resource): boolean => resourceNamed(resource).absence !== undefined;

const asFinding = ({ resource, id, missing_since, amount, currency }: Absent): Finding => ({
  key: driftKey("missing_there", resource, id),
  class: "missing_there",
  identity: null,
  severity: canBeDeleted(resource) ? "warning" : "critical",
  resource,
  objectId: id,
  differences: [],
  amountAtRiskMinor: amount === null ? null : BigInt(amount),
  currency,
  cause: canBeDeleted(resource) ? "out_of_band_edit" : "unexplained",
  evidence: { unknown_at_the_service_since: missing_since },
});
