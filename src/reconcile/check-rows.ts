import type { Knex } from "knex";
import { findInconsistentRows } from "../mirror/find-inconsistent-rows.ts";
import { driftKey } from "./drift-findings.ts";
import { recordFindings } from "./findings.ts";
import type { Sighting } from "./findings.ts";
import { withRemedy } from "./remedy.ts";
import { bound } from "./slice.ts";

/**
 * Records rows of the mirror that were changed by hand in columns which no list of the service can contradict, with
 * what to run. What the walk has found on an object says more, and stays. Idempotent.
 */
export async function checkRows(db: Knex, sighting: Sighting): Promise<void> {
  const rows = await findInconsistentRows(db, bound(sighting.seenAt));
  if (rows.length === 0) return;
  const known = await db("reconcile.findings")
    .where({ run: sighting.run })
    .whereNot("state", "healed")
    .whereNot("class", "identity")
    .select<{ resource: string; object_id: string }[]>("resource", "object_id");
  const told = new Set(known.map(({ resource, object_id: id }) => `${resource}:${id}`));
  const findings = rows.map(({ resource, id, columns }) =>
    withRemedy({
      key: driftKey("mismatch", resource, id),
      class: "mismatch",
      identity: null,
      severity: "high",
      resource,
      objectId: id,
      differences: columns.map((field) => ({ field, service: null, mirror: "(changed by hand)" })),
      amountAtRiskMinor: null,
      currency: null,
      cause: "out_of_band_edit",
      evidence: { columns },
    }),
  );
  await recordFindings(
    db,
    sighting,
    findings.filter(({ resource, objectId }) => !told.has(`${resource}:${objectId}`)),
  );
}
