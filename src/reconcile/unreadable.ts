import type { Knex } from "knex";
import type { Resource } from "../mirror/observation.ts";
import { driftKey } from "./drift-findings.ts";
import type { Sighting } from "./findings.ts";
import { recordFindings } from "./findings.ts";

/** Objects that the service shows in a form that cannot be read: they cannot be called equal. */
export async function recordUnreadable(
  db: Knex,
  sighting: Sighting,
  objects: readonly { resource: Resource; id: string; reason: string; createdAt?: string | null }[],
): Promise<void> {
  await recordFindings(
    db,
    sighting,
    objects.map(({ resource, id, reason, createdAt }) => ({
      key: driftKey("unreadable", resource, id),
      class: "unreadable",
      identity: null,
      severity: "high",
      resource,
      objectId: id,
      objectAt: createdAt ?? null,
      differences: [],
      amountAtRiskMinor: null,
      currency: null,
      cause: null,
      evidence: { reason },
    })),
  );
}
