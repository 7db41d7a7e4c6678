import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";

/** Mirror and service differ, or the service's object is unreadable. A run that reads the object again can heal it. */
const rereadClasses = ["missing_here", "behind", "mismatch", "missing_there", "unreadable"] as const;

/**
 * Classes of drift: while one of their findings is open, the mirror is not known to equal the service. `edited_row` is
 * a row edited by hand where no read shows it: such a finding is healed by `heal`, or by a check of all rows that finds
 * the row correct.
 */
export const driftClasses = [...rereadClasses, "edited_row"] as const;
export const findingClasses = [...driftClasses, "identity", "endpoint", "unsupported_sort"] as const;
export type FindingClass = (typeof findingClasses)[number];

export const severities = ["critical", "high", "warning"] as const;
export type Severity = (typeof severities)[number];

export type FindingCause =
  | "missed_webhook"
  | "late"
  | "out_of_band_edit"
  | "our_fault"
  | "unexplained"
  | "initial_import";

/** A field on both sides, as JSON values; null where a side has none. */
export interface Difference {
  field: string;
  service: unknown;
  mirror: unknown;
}

export interface Finding {
  /** Stable: the same fault has the same key in every run. */
  key: string;
  class: FindingClass;
  /** The name of the invariant, for class `identity`. */
  identity: string | null;
  severity: Severity;
  resource: string | null;
  objectId: string | null;
  /**
   * The earliest time at which the fault can falsify a figure, ISO 8601. Left out or null: the creation of the object,
   * as the mirror has it; where the mirror has none, the finding affects every period.
   */
  objectAt?: string | null;
  /** Money first. */
  differences: readonly Difference[];
  amountAtRiskMinor: bigint | null;
  currency: string | null;
  cause: FindingCause | null;
  evidence: Readonly<Record<string, unknown>>;
}

/** The run that saw a finding, and its time at the service. `run` is null where no run found it. */
export interface FoundIn {
  run: number | null;
  seenAt: Date;
}

/**
 * The effect on a finding: `opened` for the first time, `reopened` after it was healed or changed once acknowledged, or
 * `refreshed`, as it still existed.
 */
export interface RecordedFinding {
  key: string;
  change: "opened" | "reopened" | "refreshed";
}

/**
 * SQL condition: the finding is a new fault, rather than the same one seen again. The differences of a broken invariant
 * are text in which a time may pass: there only another amount makes another fault.
 */
const startsNewLife = `(f.state = 'healed' or f.state = 'acknowledged' and (
  (f.amount_at_risk_minor, f.currency) is distinct from (excluded.amount_at_risk_minor, excluded.currency)
  or f.class <> 'identity' and f.differences <> excluded.differences))`;

/**
 * Records findings in one statement. A new finding opens. A healed one is reopened, and its former life (its time from
 * opening to healing) moves into `history`. An open one is refreshed. An acknowledged one is refreshed while it is
 * unchanged; it is reopened when the amount at risk or the differences between mirror and service change. Idempotent
 * within a run. Works with or without a transaction. Of two findings with one key, the last counts.
 */
export async function recordFindings(
  db: Knex,
  { run, seenAt }: FoundIn,
  findings: readonly Finding[],
): Promise<RecordedFinding[]> {
  const unique = [...new Map(findings.map((finding) => [finding.key, finding])).values()];
  if (unique.length === 0) return [];
  unique.sort((a, b) => (a.key < b.key ? -1 : 1));
  const column = <T extends string | number | null>(of: (finding: Finding) => T) => sqlArray(unique.map(of));
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
       state = case when ${startsNewLife} then 'reopened' else f.state end,
       first_seen = case when ${startsNewLife} then excluded.first_seen else f.first_seen end,
       first_run = case when ${startsNewLife} then excluded.first_run else f.first_run end,
       healed_at = null,
       ack_by = case when ${startsNewLife} then null else f.ack_by end,
       ack_at = case when ${startsNewLife} then null else f.ack_at end,
       ack_note = case when ${startsNewLife} then null else f.ack_note end,
       history = case when ${startsNewLife} then f.history || jsonb_build_object(
           'first_seen', f.first_seen, 'last_seen', f.last_seen, 'healed_at', coalesce(f.healed_at, excluded.last_seen), 'cause', f.cause,
           'differences', f.differences, 'evidence', f.evidence, 'run', f.run, 'ack_by', f.ack_by,
           'ack_note', f.ack_note) else f.history end
     returning key, case when xmax = 0 then 'opened'
       -- A finding that is reopened just now was first seen now; one that was reopened earlier was not.
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

/** Heals the unhealed findings among these keys and returns their number. One statement, idempotent. */
export async function healFindings(db: Knex, { run, seenAt }: FoundIn, keys: readonly string[]): Promise<number> {
  if (keys.length === 0) return 0;
  return db("reconcile.findings")
    .whereIn("key", [...keys])
    .whereNot("state", "healed")
    .update({ state: "healed", healed_at: seenAt, run: run ?? db.ref("run") });
}

/**
 * Heals the unhealed findings of a class, or of one invariant, that a complete check did not see again. Call it after
 * `recordFindings`, with the same sighting. One statement, idempotent.
 */
export async function healUnseenFindings(
  db: Knex,
  { run, seenAt }: FoundIn,
  of: { class: FindingClass; identity?: string },
): Promise<number> {
  return (
    db("reconcile.findings")
      .where(of)
      .whereNot("state", "healed")
      // The second condition holds even if the service's clock was set back since.
      .whereRaw("(last_seen < ? or run is distinct from coalesce(?::bigint, run))", [seenAt, run as number])
      .update({ state: "healed", healed_at: seenAt, run: run ?? db.ref("run") })
  );
}

/**
 * Heals the unhealed findings among these keys that are about the object of a heal, and returns their number. Needs the
 * transaction that records the heal. One statement, idempotent.
 */
export async function healFindingsOf(
  trx: Knex.Transaction,
  { heal, at }: { heal: string; at: Date },
  keys: readonly string[],
): Promise<number> {
  const { rows } = await trx.raw<{ rows: { healed: number }[] }>(
    "select reconcile.heal_findings(?::bigint, ?::text[], ?) as healed",
    [heal, sqlArray(keys), at],
  );
  return rows[0]?.healed ?? 0;
}

/** The person who acknowledges a finding: an `Actor` of `people/`. */
interface Acknowledger {
  accountId: number | null;
  name: string;
  via: string;
  address: string | null;
}

/**
 * Accepts a finding on a person's decision: it stays acknowledged while it lasts and no longer counts as drift left.
 * The act is recorded with it (`people.audit`). False, without a change, where no unhealed finding has this id. One
 * statement.
 */
export async function acknowledgeFinding(
  db: Knex,
  { id, by, note, at }: { id: number; by: Acknowledger; note: string; at: Date },
): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { done: boolean }[] }>(
    "select reconcile.acknowledge_finding(?, ?, ?, ?, ?, ?, ?) as done",
    [id, note, at, by.accountId as number, by.name, by.via, by.address as string],
  );
  return rows[0]?.done === true;
}

export const findingStates = ["open", "reopened", "acknowledged", "healed"] as const;
export type FindingState = (typeof findingStates)[number];

/** A finding as people see it. `amount_at_risk_minor` is minor units, as text. */
export interface FindingRow {
  id: string;
  state: FindingState;
  severity: string;
  class: string;
  identity: string | null;
  /** `observe`: the finding does not count against the mirror. Null where it is not about an invariant. */
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
  /** The run that saw it last; null where none did. */
  run: string | null;
}

export const findingColumns: readonly string[] = [
  "id state severity class identity resource object_id differences amount_at_risk_minor currency cause evidence",
  "first_seen last_seen healed_at ack_by ack_at ack_note run",
].flatMap((names) => names.split(" "));

/** Null where no finding has this id. `isLocked`: no other transaction can change it until this one ends. */
export async function findFinding(
  db: Knex,
  id: number,
  { isLocked = false }: { isLocked?: boolean } = {},
): Promise<FindingRow | null> {
  if (isLocked) await db.raw("select reconcile.lock_finding(?)", [id]);
  const found = await db("reconcile.findings")
    .select<FindingRow[]>([...findingColumns])
    .select(db.raw("evidence->>'mode' as mode"))
    .where({ id })
    .first<FindingRow | undefined>();
  return found ?? null;
}

/** The number of findings in each state. */
export async function countFindings(db: Knex): Promise<Record<FindingState, number>> {
  const rows: { state: FindingState; n: string | number }[] = await db("reconcile.findings")
    .select("state")
    .count("* as n")
    .groupBy("state");
  const counts = { open: 0, reopened: 0, acknowledged: 0, healed: 0 };
  for (const { state, n } of rows) counts[state] = Number(n);
  return counts;
}

/**
 * Heals drift findings that a run did not see again although it read where they had to show: in a closed slice read to
 * its end, or by id. Leaves out rows edited by hand (`recordEditedRows`), since no read shows their fault. For the end
 * of a run. One statement; returns the number of findings.
 */
export async function healCoveredFindings(db: Knex, { run, seenAt }: FoundIn & { run: number }): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.findings f set state = 'healed', healed_at = :seenAt, run = :run
     from (
       select g.id, coalesce(mirror.created_at(g.resource, g.object_id), g.object_at) as created_at
       from reconcile.findings g
       where g.state <> 'healed' and g.run is distinct from :run and g.class = any(:classes)
     ) known
     where f.id = known.id and (
       exists (
         select from reconcile.coverage c
         where c.run = :run and c.state = 'complete' and c.is_closed and c.resource = f.resource
           and (c.created_from is null or c.created_from <= known.created_at)
           -- An object whose creation time is unknown was created before it was first seen.
           and (c.created_before is null or c.created_before > coalesce(known.created_at, f.first_seen)))
       or exists (
         select from reconcile.doubts d
         where d.run = :run and d.resource = f.resource and d.id = f.object_id and d.outcome = 'equal'))`,
    { run, seenAt, classes: [...rereadClasses] },
  );
  return rowCount;
}
