import type { Knex } from "knex";
import { traceEvents } from "../inbox/queries.ts";
import type { InboxTrace } from "../inbox/queries.ts";
import type { DifferentObject } from "../mirror/compare-rows.ts";
import { findRecorded } from "../mirror/history.ts";
import type { GroupState } from "../mirror/observation.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { amountAtRisk } from "./amount-at-risk.ts";
import { causeOf } from "./cause.ts";
import type { Difference, Finding, Severity } from "./findings.ts";
import { hasDifferences } from "./judge.ts";
import type { Judged } from "./sort-out.ts";

/** The key of a finding of drift: one an object and class. */
export const driftKey = (kind: string, resource: string, id: string): string =>
  `${kind}:${resource}:${id}`;

/**
 * The findings that differences make, with their causes and the evidence for them. Reads the inbox and the history as
 * they are before anything is healed: two statements, whatever the number of objects.
 */
export async function driftFindings(db: Knex, judged: readonly Judged[]): Promise<Finding[]> {
  const drifted = judged.flatMap(({ resource, id, object, judgement }) => {
    if (!hasDifferences(judgement)) return [];
    const { kind, differences } = judgement;
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
      severity: severityOf(differences, object.stored === null),
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

/** When an object was created: by the service, or by the mirror where it says earlier. Fixed form. */
export function createdAt({ stored, groups }: DifferentObject): string | null {
  const shown = groups.map(({ state }) => state.columns["created_at"]);
  const times = [...shown, stored?.["created_at"]].flatMap((at) => {
    const time = typeof at === "string" ? canonicalTimestamp(at) : null;
    return time === null ? [] : [time];
  });
  return times.sort()[0] ?? null;
}

const grave = new Set(["total", "amount", "subtotal", "discount_amount", "currency", "status"]);

const severityOf = (differences: readonly Difference[], isMissing: boolean): Severity =>
  isMissing || differences.some(({ field }) => grave.has(field)) ? "high" : "warning";

const evidenceOf = (state: GroupState, events: readonly InboxTrace[], isKnownState: boolean) => ({
  changed_at: state.updatedAt,
  observed_at: state.observedAt,
  known_to_history: isKnownState,
  // Their absence is evidence as well.
  events: events.map(({ seq, eventId, type, state: inboxState, createdAt, receivedAt }) => ({
    seq,
    event_id: eventId,
    type,
    state: inboxState,
    created_at: createdAt,
    received_at: receivedAt,
  })),
});
