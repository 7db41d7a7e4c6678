import type { Knex } from "knex";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { type InboxTrace, traceEvents } from "../../../core/inbox/queries.ts";
import type { DifferentObject } from "../../../core/mirror/compare/compare-states.ts";
import { type InconsistentRow, handEditedRows } from "../../../core/mirror/compare/hand-edited-rows.ts";
import { resourceNamed } from "../../../core/mirror/resources.ts";
import { bookedFields } from "../../../core/mirror/resources/resource.ts";
import type { GroupState, Resource } from "../../../core/mirror/snapshot.ts";
import { findRecorded } from "../../../core/mirror/write/apply.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { type Classified, hasDifferences } from "../compare/classify.ts";
import { changeTimeFields } from "../compare/differences.ts";
import { boundText } from "../coverage/slice.ts";
import {
  type Difference,
  type Finding,
  type FindingCause,
  type FindingClass,
  type Severity,
  type FoundIn,
  healUnseenFindings,
  recordFindings,
} from "./findings.ts";

/** The key of a drift finding: one per object and class. */
export const driftKey = (kind: string, resource: string, id: string): string => `${kind}:${resource}:${id}`;

/**
 * The findings for differences, each with its cause and evidence. Call it before anything is healed: it reads the inbox
 * and the history as they were before. Two statements, whatever the number of objects.
 */
export async function driftFindings(db: Knex, classified: readonly Classified[]): Promise<Finding[]> {
  const drifted = classified.flatMap(({ resource, id, object, classification }) => {
    if (!hasDifferences(classification)) return [];
    const { kind, differences } = classification;
    return [{ resource, id, object, class: kind, differences, newest: newestState(object.groups) }];
  });
  if (drifted.length === 0) return [];
  const traces = new Map<string, InboxTrace[]>();
  for (const trace of await traceEvents(
    db,
    drifted.map(({ id }) => id),
  )) {
    const known = traces.get(trace.resourceId);
    if (known === undefined) traces.set(trace.resourceId, [trace]);
    else known.push(trace);
  }
  const recorded = await findRecorded(
    db,
    drifted.map(({ newest }) => newest),
  );
  return drifted.map(({ newest, object, ...found }): Finding => {
    const { resource, id, differences } = found;
    const events = traces.get(id) ?? [];
    const isKnownState = recorded.has(newest);
    const changedAt = new Date(newest.updatedAt);
    const risk = amountAtRisk(object, differences);
    return {
      key: driftKey(found.class, resource, id),
      class: found.class,
      identity: null,
      severity: severityOf(object, differences),
      resource,
      objectId: id,
      objectAt: createdAt(object),
      differences,
      amountAtRiskMinor: risk.amountMinor,
      currency: risk.currency,
      cause: causeOf({ ...found, changedAt, events, isKnownState }),
      evidence: evidenceOf(newest, events, isKnownState),
    };
  });
}

function newestState(groups: readonly { state: GroupState }[]): GroupState {
  const [first, ...rest] = groups.map(({ state }) => state);
  if (first === undefined) throw new TypeError("an object that differs has no group that does");
  return rest.reduce((a, b) => (b.version > a.version ? b : a), first);
}

/** The creation time of an object: the earlier one where service and mirror differ. Fixed form. */
export function createdAt({ stored, groups }: DifferentObject): string | null {
  const shown = groups.map(({ state }) => state.columns["created_at"]);
  const times = [...shown, stored?.["created_at"]].flatMap((at) => {
    const time = typeof at === "string" ? canonicalTimestamp(at) : null;
    return time === null ? [] : [time];
  });
  return times.sort()[0] ?? null;
}

function severityOf({ resource, stored }: DifferentObject, differences: readonly Difference[]): Severity {
  const booked = new Set(bookedFields(resourceNamed(resource)));
  return stored === null || differences.some(({ field }) => booked.has(field)) ? "high" : "warning";
}

const evidenceOf = (state: GroupState, events: readonly InboxTrace[], isKnownState: boolean) => ({
  changed_at: state.updatedAt,
  observed_at: state.observedAt,
  known_to_history: isKnownState,
  // An empty list is evidence too.
  events: events.map(({ seq, eventId, type, state: inboxState, createdAt, receivedAt }) => ({
    seq,
    event_id: eventId,
    type,
    state: inboxState,
    created_at: createdAt,
    received_at: receivedAt,
  })),
});

export interface AmountAtRisk {
  /** Minor units. */
  amountMinor: bigint | null;
  currency: string | null;
}

/**
 * The amount at risk of a difference: the difference in money where there is one; the whole amount where the object is
 * missing or its status differs; otherwise 0. Null for objects without an amount.
 */
export function amountAtRisk(
  { resource, stored, groups }: DifferentObject,
  differences: readonly Difference[],
): AmountAtRisk {
  const columns = Object.assign({}, ...groups.map(({ state }) => state.columns)) as Record<string, unknown>;
  const value = (field: string): unknown => columns[field] ?? stored?.[field];
  const field = resourceNamed(resource).amount;
  const amount = field === undefined ? null : asAmount(value(field));
  const currency = value("currency");
  if (amount === null) return { amountMinor: null, currency: null };
  const differs = (name: string | undefined) => differences.find((one) => one.field === name);
  const byMoney = differs(field);
  const [there, here] = [asAmount(byMoney?.service), asAmount(byMoney?.mirror)];
  const isWhole = stored === null || differs("status") !== undefined;
  return {
    amountMinor: there !== null && here !== null ? distance(there, here) : isWhole ? distance(amount, 0n) : 0n,
    currency: typeof currency === "string" ? currency : null,
  };
}

const asAmount = (value: unknown): bigint | null =>
  typeof value === "number" && Number.isInteger(value) ? BigInt(value) : null;

/** The column's maximum. The difference to a corrupted row may exceed it, and must not stop the run. */
const maxBigint = 2n ** 63n - 1n;

function distance(a: bigint, b: bigint): bigint {
  const difference = a < b ? b - a : a - b;
  return difference > maxBigint ? maxBigint : difference;
}

export interface CauseFacts {
  class: FindingClass;
  resource: Resource;
  differences: readonly Difference[];
  /** When the object changed, according to the service. */
  changedAt: Date;
  /** The object's events in the inbox, newest first. */
  events: readonly InboxTrace[];
  /** The mirror's history contains exactly the state that the service shows. */
  isKnownState: boolean;
}

/** A subscription's changes after its last cycle. No event announces them, since no renewal is due any more. */
const endOfSubscription: Readonly<Record<string, string | null>> = {
  status: "completed",
  next_billing_date: null,
};

function isAnnounced({ resource, differences }: CauseFacts): boolean {
  const isOver =
    resource === "subscription" &&
    differences.some(({ field, service }) => field === "status" && service === "completed");
  const { announcedFields } = resourceNamed(resource);
  return differences.some(
    ({ field, service }) => announcedFields?.has(field) === true && !(isOver && endOfSubscription[field] === service),
  );
}

/** The cause of a difference, as far as the evidence shows. */
export function causeOf(facts: CauseFacts): FindingCause {
  if (facts.class === "missing_there") return "out_of_band_edit";
  // The mirror had this state once and shows another one now: the row was edited by hand.
  if (facts.class === "mismatch") return facts.isKnownState ? "out_of_band_edit" : "unexplained";
  const { changedAt, events } = facts;
  const hasEvent = events.some(({ createdAt }) => createdAt !== null && createdAt >= changedAt);
  if (facts.isKnownState || hasEvent) return "our_fault";
  const shouldHaveEvent =
    facts.class === "missing_here" ||
    isAnnounced(facts) ||
    // An order changes only through its charges and refunds: a second partial refund changes nothing but its time.
    (facts.resource === "order" && facts.differences.every(({ field }) => changeTimeFields.has(field)));
  return shouldHaveEvent ? "missed_webhook" : "out_of_band_edit";
}

/**
 * Corrects the cause of findings whose webhook was not missed but came after the grace, which only a later run can
 * know. One statement; returns the number of findings.
 */
export async function correctLateCauses(db: Knex, since: Date): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.findings f set cause = 'late',
       evidence = f.evidence || jsonb_build_object('late_event', late.event_id, 'late_received_at', late.received_at)
     from (
       select distinct on (g.id) g.id, e.event_id, e.received_at
       from reconcile.findings g join inbox.events e on e.resource_id = g.object_id
       where g.cause = 'missed_webhook' and g.last_seen >= ?
         and e.event_created_at = date_trunc('milliseconds', (g.evidence->>'changed_at')::timestamptz)
       order by g.id, e.seq
     ) late
     where f.id = late.id`,
    [since],
  );
  return rowCount;
}

/** Records objects that the service shows in an unreadable form: they cannot be proved equal. */
export async function recordUnreadable(
  db: Knex,
  sighting: FoundIn,
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

/**
 * Records rows of the mirror that were edited manually in ways that no list of the service shows (`handEditedRows`),
 * with the command that repairs them. Heals the findings on rows that are correct again. Leaves out objects that this
 * run found unknown or unreadable at the service: `heal` could not write them. Reads every row. Idempotent. Opens its
 * own transactions.
 */
export async function recordEditedRows(db: Knex, sighting: FoundIn): Promise<void> {
  for await (const rows of handEditedRows(db, boundText(sighting.seenAt))) {
    const unshown = await unshownAmong(db, sighting, rows);
    const edited = rows.filter(({ resource, id }) => !unshown.has(driftKey("", resource, id)));
    await inTransaction(db, (trx) => recordFindings(trx, sighting, edited.map(editedRow)));
  }
  await inTransaction(db, (trx) => healUnseenFindings(trx, sighting, { class: "edited_row" }));
}

async function unshownAmong(
  db: Knex,
  { run }: FoundIn,
  rows: readonly InconsistentRow[],
): Promise<ReadonlySet<string>> {
  const recorded = await db("reconcile.findings")
    .whereIn("class", ["missing_there", "unreadable"])
    .whereNot("state", "healed")
    .where({ run })
    .whereIn(
      "object_id",
      rows.map(({ id }) => id),
    )
    .select<{ resource: string; object_id: string }[]>("resource", "object_id");
  return new Set(recorded.map(({ resource, object_id: id }) => driftKey("", resource, id)));
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

/** Adds the command that repairs a row which no read can. It takes a person's decision. */
export const withRemedy = (finding: Finding): Finding => ({
  ...finding,
  evidence: {
    ...finding.evidence,
    remedy:
      "No read can correct this row: its version is later than the service's, or no read shows the fields at fault. " +
      "To write it as the service shows it: " +
      tallyhook(`heal ${finding.resource} ${finding.objectId} --from-service --reason "…"`),
  },
});
