import type { Knex } from "knex";
import { inconsistentRows } from "../mirror/find-inconsistent-rows.ts";
import type { InconsistentRow } from "../mirror/find-inconsistent-rows.ts";
import { driftKey } from "./drift-findings.ts";
import { healUnseenFindings, recordFindings } from "./findings.ts";
import type { Finding, Sighting } from "./findings.ts";
import { withRemedy } from "./remedy.ts";
import { bound } from "./slice.ts";

/**
 * Records rows of the mirror that were edited by hand in columns which no list of the service can contradict, with
 * what to run, and heals the findings on rows that are right again. What the service does not show cannot be written as
 * it shows it: of such an object the run has told already. Reads every row. Idempotent.
 */
export async function checkRows(db: Knex, sighting: Sighting): Promise<void> {
  for await (const rows of inconsistentRows(db, bound(sighting.seenAt))) {
    const unshown = await unshownAmong(db, sighting, rows);
    const edited = rows.filter(({ resource, id }) => !unshown.has(driftKey("", resource, id)));
    await recordFindings(db, sighting, edited.map(editedRow));
  }
  await healUnseenFindings(db, sighting, { class: "edited_row" });
}

async function unshownAmong(
  db: Knex,
  { run }: Sighting,
  rows: readonly InconsistentRow[],
): Promise<ReadonlySet<string>> {
  const told = await db("reconcile.findings")
    .whereIn("class", ["missing_there", "unreadable"])
    .whereNot("state", "healed")
    .where({ run })
    .whereIn(
      "object_id",
      rows.map(({ id }) => id),
    )
    .select<{ resource: string; object_id: string }[]>("resource", "object_id");
  return new Set(told.map(({ resource, object_id: id }) => driftKey("", resource, id)));
}

const editedRow = ({ resource, id, columns }: InconsistentRow): Finding =>
  withRemedy({
    key: driftKey("edited_row", resource, id),
    class: "edited_row",
    identity: null,
    severity: "high",
    resource,
    objectId: id,
    differences: columns.map((field) => ({
      field,
      service: null,
      mirror: "(changed by hand)",
    })),
    amountAtRiskMinor: null,
    currency: null,
    cause: "out_of_band_edit",
    evidence: { columns },
  });
