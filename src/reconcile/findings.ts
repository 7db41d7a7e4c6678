import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

/** Mirror and service differ, or what the service shows cannot be read: a run that reads the object again can heal it. */
export const rereadClasses = [
  "missing_here",
  "behind",
  "mismatch",
  "missing_there",
  "unreadable",
] as const;

/**
 * Classes of drift: as long as one of their findings is open, the mirror is not known to equal the service. `edited_row`
 * is a row edited by hand in columns that no read compares, so no read heals it: only a check of all rows, or `heal`.
 */
export const driftClasses = [...rereadClasses, "edited_row"] as const;
export type FindingClass =
  (typeof driftClasses)[number] | "identity" | "endpoint" | "unsupported_sort";

export type Severity = "critical" | "high" | "warning";

export type FindingCause =
  "missed_webhook" | "late" | "out_of_band_edit" | "our_fault" | "unexplained" | "initial_import";

/** A field on both sides, as JSON values; null where a side has none. */
export interface Difference {
  field: string;
  service: unknown;
  mirror: unknown;
}

export interface Finding {
  /** Stable: the same fault bears the same key in every run. */
  key: string;
  class: FindingClass;
  /** The name of the identity, for the class of that name. */
  identity: string | null;
  severity: Severity;
  resource: string | null;
  objectId: string | null;
  /**
   * The earliest time of which it can falsify a figure, ISO 8601. Left out or null: since the object was created, as the
   * mirror has it; where the mirror has none it touches every period.
   */
  objectAt?: string | null;
  /** Money first. */
  differences: readonly Difference[];
  amountAtRiskMinor: bigint | null;
  currency: string | null;
  cause: FindingCause | null;
  evidence: Readonly<Record<string, unknown>>;
}

/** By which run, and at which time of the service. `run` is null for what no run found. */
export interface Sighting {
  run: number | null;
  seenAt: Date;
}

/** What became of a finding: `opened` for the first time, `reopened` after it was healed, or still there. */
export interface RecordedFinding {
  key: string;
  change: "opened" | "reopened" | "refreshed";
}

/** Of an identity the differences are a text that tells ages, too: there the money alone says that it is another. */
const isAnew = `(f.state = 'healed' or f.state = 'acknowledged' and (
  (f.amount_at_risk_minor, f.currency) is distinct from (excluded.amount_at_risk_minor, excluded.currency)
  or f.class <> 'identity' and f.differences <> excluded.differences))`;

/**
 * Records what was found, in one statement: a new finding opens, a healed one is reopened (its former life moves
 * into `history`), an open one is refreshed, and so is an acknowledged one while it is what was acknowledged: with
 * another amount at risk, or other differences between mirror and service, it is reopened, and the life that was
 * acknowledged ends there. Idempotent within a run.
 * Works in a transaction and without one; of two findings with one key, the last counts.
 */
export async function recordFindings(
  db: Knex,
  { run, seenAt }: Sighting,
  findings: readonly Finding[],
): Promise<RecordedFinding[]> {
  const unique = [...new Map(findings.map((finding) => [finding.key, finding])).values()];
  if (unique.length === 0) return [];
  unique.sort((a, b) => (a.key < b.key ? -1 : 1));
  const column = <T extends string | number | null>(of: (finding: Finding) => T) =>
    sqlArray(unique.map(of));
  const { rows } = await db.raw<{ rows: RecordedFinding[] }>(
    `insert into reconcile.findings as f
       (key, class, identity, severity, resource, object_id, differences, amount_at_risk_minor, currency, cause,
        evidence, object_at, first_seen, last_seen, first_run, run)
     select g.*, sighting.*
     from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::jsonb[], ?::bigint[],
                 ?::text[], ?::text[], ?::jsonb[], ?::timestamptz[]) as g,
          (values (?::timestamptz, ?::timestamptz, ?::bigint, ?::bigint)) as sighting
     on conflict (key) do update set
       class = excluded.class, identity = excluded.identity, severity = excluded.severity,
       differences = excluded.differences, amount_at_risk_minor = excluded.amount_at_risk_minor,
       currency = excluded.currency, cause = coalesce(excluded.cause, f.cause), evidence = excluded.evidence,
       object_at = excluded.object_at, last_seen = excluded.last_seen, run = excluded.run,
       state = case when ${isAnew} then 'reopened' else f.state end,
       first_seen = case when ${isAnew} then excluded.first_seen else f.first_seen end,
       first_run = case when ${isAnew} then excluded.first_run else f.first_run end,
       healed_at = null,
       ack_by = case when ${isAnew} then null else f.ack_by end,
       ack_at = case when ${isAnew} then null else f.ack_at end,
       ack_note = case when ${isAnew} then null else f.ack_note end,
       history = case when ${isAnew} then f.history || jsonb_build_object(
           'first_seen', f.first_seen, 'last_seen', f.last_seen, 'healed_at', coalesce(f.healed_at, excluded.last_seen), 'cause', f.cause,
           'differences', f.differences, 'evidence', f.evidence, 'run', f.run, 'ack_by', f.ack_by,
           'ack_note', f.ack_note) else f.history end
     returning key, case when xmax = 0 then 'opened'
       -- A finding that has just begun a new life carries its former one with it.
       when state = 'reopened' and first_seen = last_seen and first_run is not distinct from run then 'reopened'
       else 'refreshed' end as change`,
    [
      column(({ key }) => key),
      column((finding) => finding.class),
      column(({ identity }) => identity),
      column(({ severity }) => severity),
      column(({ resource }) => resource),
      column(({ objectId }) => objectId),
      column(({ differences }) => JSON.stringify(differences)),
      column(({ amountAtRiskMinor }) => amountAtRiskMinor?.toString() ?? null),
      column(({ currency }) => currency),
      column(({ cause }) => cause),
      column(({ evidence }) => JSON.stringify(evidence)),
      column(({ objectAt }) => objectAt ?? null),
      seenAt,
      seenAt,
      run as number,
      run as number,
    ],
  );
  return rows;
}

/** Heals the unhealed ones among these keys; gives back how many there were. One statement, idempotent. */
export async function healFindings(
  db: Knex,
  { run, seenAt }: Sighting,
  keys: readonly string[],
): Promise<number> {
  if (keys.length === 0) return 0;
  return db("reconcile.findings")
    .whereIn("key", [...keys])
    .whereNot("state", "healed")
    .update({ state: "healed", healed_at: seenAt, run: run ?? db.ref("run") });
}

/**
 * Heals the unhealed findings of a class, or of one identity, that a complete check did not see again: call it after
 * `recordFindings`, with the same sighting. One statement, idempotent.
 */
export async function healUnseenFindings(
  db: Knex,
  { run, seenAt }: Sighting,
  of: { class: FindingClass; identity?: string },
): Promise<number> {
  return (
    db("reconcile.findings")
      .where(of)
      .whereNot("state", "healed")
      // Also where the service's clock was set back since.
      .whereRaw("(last_seen < ? or run is distinct from coalesce(?::bigint, run))", [
        seenAt,
        run as number,
      ])
      .update({ state: "healed", healed_at: seenAt, run: run ?? db.ref("run") })
  );
}

/**
 * Somebody has looked and takes it as it is: it stays acknowledged while it lasts, and counts no longer as drift
 * left. False where there is no unhealed finding with this id. One statement, idempotent.
 */
export async function acknowledgeFinding(
  db: Knex,
  { id, by, note, at }: { id: number; by: string; note: string; at: Date },
): Promise<boolean> {
  const changed = await db("reconcile.findings")
    .where({ id })
    .whereNot("state", "healed")
    .update({ state: "acknowledged", ack_by: by, ack_note: note, ack_at: at });
  return changed > 0;
}
