import type { Knex } from "knex";

export const findingStates = ["open", "reopened", "acknowledged", "healed"] as const;
export type FindingState = (typeof findingStates)[number];

/** A finding as people see it. `amount_at_risk_minor` is minor units, as text. */
export interface FindingRow {
  id: string;
  state: FindingState;
  severity: string;
  class: string;
  identity: string | null;
  /** `observe`: it does not count against the mirror; null for what is no identity. */
  mode: string | null;
  resource: string | null;
  object_id: string | null;
  differences: { field: string; service: unknown; mirror: unknown }[];
  amount_at_risk_minor: string | null;
  currency: string | null;
  cause: string | null;
  evidence: Record<string, unknown>;
  first_seen: Date;
  last_seen: Date;
  healed_at: Date | null;
  ack_by: string | null;
  ack_at: Date | null;
  ack_note: string | null;
}

const columns = [
  "id state severity class identity resource object_id differences amount_at_risk_minor currency cause evidence",
  "first_seen last_seen healed_at ack_by ack_at ack_note",
].flatMap((names) => names.split(" "));

/** The most severe first, the newest of each before the others. */
export function listFindings(
  db: Knex,
  { states, limit }: { states: readonly FindingState[]; limit: number },
): Promise<FindingRow[]> {
  return db("reconcile.findings")
    .select<FindingRow[]>(columns)
    .select(db.raw("evidence->>'mode' as mode"))
    .whereIn("state", [...states])
    .orderByRaw(
      "array_position(array['critical', 'high', 'warning'], severity), last_seen desc, id",
    )
    .limit(limit);
}

export async function findFinding(db: Knex, id: number): Promise<FindingRow | null> {
  const row = await db("reconcile.findings")
    .select<FindingRow[]>(columns)
    .select(db.raw("evidence->>'mode' as mode"))
    .where({ id })
    .first<FindingRow | undefined>();
  return row ?? null;
}

/** How many there are in each state. */
export async function countFindings(db: Knex): Promise<Record<FindingState, number>> {
  const rows: { state: FindingState; n: string | number }[] = await db("reconcile.findings")
    .select("state")
    .count("* as n")
    .groupBy("state");
  const counts = { open: 0, reopened: 0, acknowledged: 0, healed: 0 };
  for (const { state, n } of rows) counts[state] = Number(n);
  return counts;
}
