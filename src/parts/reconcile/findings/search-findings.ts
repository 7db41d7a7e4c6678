import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { mirrorResources } from "../../../core/mirror/resources.ts";
import { allColumns } from "../../../core/mirror/resources/resource.ts";
import {
  type FindingClass,
  type FindingRow,
  type FindingState,
  type Severity,
  driftClasses,
  findingColumns,
  severities,
} from "./findings.ts";

export interface FindingFilter {
  states: readonly FindingState[];
  severity?: Severity | null;
  class?: FindingClass | null;
  resource?: string | null;
  /** An object's id, or an order's number: that finds the order and its transactions. */
  object?: string | null;
  /** Only findings that this run saw last. */
  run?: number | null;
  ids?: readonly string[] | null;
}

/** The start of a page: after the row with these values. */
export interface FindingCursor {
  severity: Severity;
  id: string;
}

/**
 * Findings up to `limit`. Unhealed ones come by severity, and the newest of each first; a search with healed ones,
 * which are never deleted, has the newest first regardless of severity. One statement.
 */
export function searchFindings(
  db: Knex,
  {
    states,
    severity = null,
    class: kind = null,
    resource = null,
    object = null,
    run = null,
    ids = null,
  }: FindingFilter,
  { after = null, limit }: { after?: FindingCursor | null; limit: number },
): Promise<FindingRow[]> {
  const isBoard = !states.includes("healed");
  const query = db("reconcile.findings as f")
    .select<FindingRow[]>(findingColumns.map((name) => `f.${name}`))
    .select(db.raw("f.evidence->>'mode' as mode"))
    .whereIn("f.state", [...states])
    .orderByRaw(isBoard ? `${rank}, f.id desc` : "f.id desc")
    .limit(limit);
  // Lets PostgreSQL use the index of unhealed findings.
  if (isBoard) void query.whereRaw("f.state <> 'healed'");
  if (severity !== null) void query.where("f.severity", severity);
  if (kind !== null) void query.where("f.class", kind);
  if (resource !== null) void query.where("f.resource", resource);
  if (run !== null) void query.where("f.run", run);
  if (ids !== null) void query.whereRaw("f.id = any(?::bigint[])", [[...ids]]);
  if (object !== null) {
    void query.whereRaw(
      `f.object_id = any(array(
        select cast(:object as text)
        union all select o.id from mirror.orders o where o.order_number = :object
        union all select t.id from mirror.transactions t join mirror.orders o on o.id = t.order_id
          where o.order_number = :object))`,
      { object },
    );
  }
  if (after !== null && !isBoard) void query.where("f.id", "<", after.id);
  if (after !== null && isBoard) {
    void query.whereRaw(`(${rank}, -f.id) > (?, -?::bigint)`, [severities.indexOf(after.severity) + 1, after.id]);
  }
  return query;
}

const rank = `array_position(array[${severities.map((name) => `'${name}'`).join(", ")}], f.severity)`;

/** The findings of one object that are not healed. One statement. */
export function findingsOfObject(db: Knex, { resource, id }: { resource: string; id: string }): Promise<FindingRow[]> {
  return db("reconcile.findings")
    .select<FindingRow[]>([...findingColumns])
    .select(db.raw("evidence->>'mode' as mode"))
    .where({ object_id: id, resource })
    .whereNot("state", "healed")
    .orderBy("id")
    .limit(50);
}

/** Whether healing its object closes a finding. */
export const isHealedByHand = ({ class: kind }: Pick<FindingRow, "class">): boolean =>
  (driftClasses as readonly string[]).includes(kind);

/** Whether the values of a field are amounts in minor units. */
export const holdsMoney = (resource: string | null, field: string): boolean =>
  mirrorResources.some((known) => known.name === resource && allColumns(known)[field]?.holds === "money");

export interface OpenFindings {
  resource: string | null;
  severity: Severity;
  /** Mirror and service differ; otherwise a rule is broken, or something about the service is wrong. */
  isDrift: boolean;
  isAcknowledged: boolean;
  currency: string | null;
  n: number;
  /** Minor units, as text. */
  amountAtRiskMinor: string;
  /** Service time. */
  oldest: Date;
}

/** The unhealed findings that count against the mirror, summed up. One statement. */
export async function sumOpenFindings(db: Knex): Promise<OpenFindings[]> {
  const rows = await db("reconcile.findings")
    .whereNot("state", "healed")
    .whereRaw("reconcile.is_enforced(class, evidence->>'mode')")
    .groupByRaw("1, 2, 3, 4, 5")
    .select<(Omit<OpenFindings, "n"> & { n: string })[]>(
      "resource",
      "severity",
      db.raw(`class = any(?) as "isDrift"`, [[...driftClasses]]),
      db.raw(`state = 'acknowledged' as "isAcknowledged"`),
      "currency",
      db.raw("count(*) as n, min(first_seen) as oldest"),
      db.raw(`coalesce(sum(amount_at_risk_minor), 0)::text as "amountAtRiskMinor"`),
    );
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}

/** The findings that count against the mirror and are neither healed nor acknowledged, by class. One statement. */
export async function countOpenFindings(
  db: Knex,
): Promise<{ class: string; currency: string | null; n: number; amountAtRiskMinor: bigint }[]> {
  const rows = await db("reconcile.findings")
    // The first condition lets PostgreSQL use the index of unhealed findings.
    .whereNot("state", "healed")
    .whereIn("state", ["open", "reopened"])
    .whereRaw("reconcile.is_enforced(class, evidence->>'mode')")
    .groupBy("class", "currency")
    .select<{ class: string; currency: string | null; n: string; amount: string }[]>(
      "class",
      "currency",
      db.raw("count(*) as n, coalesce(sum(amount_at_risk_minor), 0)::text as amount"),
    );
  return rows.map((row) => ({
    class: row.class,
    currency: row.currency,
    n: Number(row.n),
    amountAtRiskMinor: BigInt(row.amount),
  }));
}

/** Changes whenever a decision on the finding has to be reconsidered: with its state or its content. */
export function findingVersion(finding: FindingRow): string {
  const { state, first_seen, healed_at, ack_at, differences, amount_at_risk_minor } = finding;
  const decided = [state, first_seen, healed_at, ack_at, differences, amount_at_risk_minor];
  return createHash("sha256").update(JSON.stringify(decided)).digest("hex").slice(0, 32);
}
