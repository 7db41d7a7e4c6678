import type { RefetchRequest } from "../inbox/refetch.ts";
import type { CompletedEvent } from "../inbox/claim.ts";
import type { MissingFact } from "../mirror/listener.ts";
import type { ApplyResult, Outcome } from "../mirror/write/apply.ts";
import type { ObjectKey, Snapshot } from "../mirror/snapshot.ts";
import { confirmableFrom } from "../mirror/version.ts";
import { type Interpretation, objectNamedBy } from "./interpret-event.ts";

/** Represents a refetch of all disputes: the service's lists have only this filter for them. */
export const disputedTransactions = { resource: "disputed-transactions", id: "*" } as const;

/**
 * The result of processing each event. `applied` has one outcome for every interpretation of kind `state`, in order.
 */
export function completedEventsOf(
  events: readonly { seq: number }[],
  interpretations: readonly Interpretation[],
  { outcomes }: Pick<ApplyResult, "outcomes">,
): CompletedEvent[] {
  const remaining = outcomes.values();
  return events.map(({ seq }, n): CompletedEvent => {
    const interpretation = interpretations[n];
    const nothing = { seq, reason: null, resourceType: null, resourceId: null };
    switch (interpretation?.kind) {
      case "state": {
        const resourceType = interpretation.observation.resource;
        const resourceId = objectNamedBy(interpretation)?.id ?? null;
        return { ...nothing, resourceType, resourceId, ...outcomeOf(remaining.next().value) };
      }
      case "read": {
        const [object] = interpretation.objects;
        const known = { resourceType: object?.resource ?? null, resourceId: object?.id ?? null };
        return object === undefined
          ? { ...nothing, state: "dead", reason: "customer_id: cannot be read" }
          : { ...nothing, ...known, state: "applied", reason: "partial: read from the service" };
      }
      case "dispute":
        return { ...nothing, state: "applied", reason: "dispute: read from the service" };
      case "ignored":
        return { ...nothing, state: "ignored", reason: interpretation.reason };
      case "unreadable":
        return { ...nothing, state: "dead", reason: interpretation.reason };
      case undefined:
        throw new TypeError("an event has no interpretation");
    }
  });
}

function outcomeOf(
  outcome: Outcome | undefined,
): Pick<CompletedEvent, "state" | "reason"> & Partial<Pick<CompletedEvent, "resourceId">> {
  switch (outcome?.outcome) {
    case "applied":
    case "stale":
      return { state: outcome.outcome, reason: null, resourceId: outcome.id };
    case "unbelieved":
      return {
        state: "ignored",
        reason: `dated ${outcome.changedAt}, in the future: not accepted, read from the service`,
        resourceId: outcome.id,
      };
    case "partial":
      return { state: "applied", reason: "partial: read from the service", resourceId: outcome.id };
    case "unreadable":
      return { state: "dead", reason: outcome.reason };
    case undefined:
      throw new TypeError("an observation has no outcome");
  }
}

/** The refetches that events and their outcomes require. */
export function requiredRefetches(interpretations: readonly Interpretation[], applied: ApplyResult): RefetchRequest[] {
  const observations = interpretations.flatMap((interpretation) =>
    interpretation.kind === "state" ? [interpretation.observation] : [],
  );
  const partial = partialObjects(observations, applied.outcomes);
  const named = interpretations.flatMap((interpretation) => {
    if (interpretation.kind === "state") return interpretation.alsoRead;
    return interpretation.kind === "read" ? interpretation.objects : [];
  });
  const disputed = interpretations.flatMap((interpretation) =>
    interpretation.kind === "dispute" ? [disputedTransactions, ...interpretation.objects] : [],
  );
  return [
    ...refetchesAfter(applied),
    ...applied.unbelieved.flatMap(({ confirmedBy }) =>
      confirmedBy === null ? [] : [{ ...confirmedBy, reason: "unbelieved", notBefore: null } as const],
    ),
    ...[...partial, ...named].map((object) => ({ ...object, reason: "thin", notBefore: null }) as const),
    ...disputed.map((object) => ({ ...object, reason: "dispute", notBefore: null }) as const),
  ];
}

/** The refetches that applying snapshots requires: ties, and embedded objects without their state. */
export function refetchesAfter({ ties, unread }: Pick<ApplyResult, "ties" | "unread">): RefetchRequest[] {
  return [
    ...ties.map(({ resource, id, updatedAt }) => {
      return { resource, id, reason: "tie", notBefore: confirmableFrom(updatedAt) } as const;
    }),
    ...unread.map((object) => ({ ...object, reason: "thin", notBefore: null }) as const),
  ];
}

/** The refetches that alerts require: facts of a decline that an event left out. */
export const refetchesForAlerts = (missing: readonly MissingFact[]): RefetchRequest[] =>
  missing.map(({ resource, id }) => ({ resource, id, reason: "alert", notBefore: null }));

/** The partial objects among these snapshots. */
export const partialObjects = (observations: readonly Snapshot[], outcomes: readonly Outcome[]): ObjectKey[] =>
  outcomes.flatMap((outcome, n) => {
    const resource = observations[n]?.resource;
    return outcome.outcome === "partial" && resource !== undefined ? [{ resource, id: outcome.id }] : [];
  });
