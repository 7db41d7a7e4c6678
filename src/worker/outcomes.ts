import type { MissingFact } from "../alerts/assess.ts";
import type { WantedRefetch } from "../inbox/refetch.ts";
import type { Settlement } from "../inbox/claim.ts";
import type { Applied, Outcome } from "../mirror/write/apply.ts";
import type { ObjectKey, Observation } from "../mirror/snapshot.ts";
import { settledFrom } from "../mirror/version.ts";
import type { Interpretation } from "./interpret-event.ts";

/** The service's lists have no filter for disputes but this one; it stands for all of them. */
export const disputedTransactions = { resource: "disputed-transactions", id: "*" } as const;

/** How the work on each event ended. `applied` has an outcome for every meaning that is a state, in order. Pure. */
export function settlementsOf(
  events: readonly { seq: number }[],
  meanings: readonly Interpretation[],
  { outcomes }: Pick<Applied, "outcomes">,
): Settlement[] {
  const remaining = outcomes.values();
  return events.map(({ seq }, n): Settlement => {
    const meaning = meanings[n];
    const nothing = { seq, reason: null, resourceType: null, resourceId: null };
    switch (meaning?.kind) {
      case "state": {
        const resourceType = meaning.observation.resource;
        return { ...nothing, resourceType, ...outcomeOf(remaining.next().value) };
      }
      case "read": {
        const [object] = meaning.objects;
        const known = { resourceType: object?.resource ?? null, resourceId: object?.id ?? null };
        return object === undefined
          ? { ...nothing, state: "dead", reason: "customer_id: cannot be read" }
          : { ...nothing, ...known, state: "applied", reason: "thin: read from the service" };
      }
      case "dispute":
        return { ...nothing, state: "applied", reason: "dispute: read from the service" };
      case "ignored":
        return { ...nothing, state: "ignored", reason: meaning.reason };
      case "unreadable":
        return { ...nothing, state: "dead", reason: meaning.reason };
      case undefined:
        throw new TypeError("an event has no meaning");
    }
  });
}

function outcomeOf(
  outcome: Outcome | undefined,
): Pick<Settlement, "state" | "reason" | "resourceId"> {
  switch (outcome?.outcome) {
    case "applied":
    case "stale":
      return { state: outcome.outcome, reason: null, resourceId: outcome.id };
    case "unbelieved":
      return {
        state: "ignored",
        reason: `dated ${outcome.changedAt}, later than it can be: not believed, read from the service`,
        resourceId: outcome.id,
      };
    case "thin":
      return { state: "applied", reason: "thin: read from the service", resourceId: outcome.id };
    case "unreadable":
      return { state: "dead", reason: outcome.reason, resourceId: null };
    case undefined:
      throw new TypeError("an observation has no outcome");
  }
}

/** The reads that events and what came of them ask for. Pure. */
export function wantedReads(
  meanings: readonly Interpretation[],
  applied: Applied,
): WantedRefetch[] {
  const observations = meanings.flatMap((meaning) =>
    meaning.kind === "state" ? [meaning.observation] : [],
  );
  const thin = partialObjects(observations, applied.outcomes);
  const named = meanings.flatMap((meaning) => {
    if (meaning.kind === "state") return meaning.alsoRead;
    return meaning.kind === "read" ? meaning.objects : [];
  });
  const disputed = meanings.flatMap((meaning) =>
    meaning.kind === "dispute" ? [disputedTransactions, ...meaning.objects] : [],
  );
  return [
    ...readsAfter(applied),
    ...applied.unbelieved.flatMap(({ settledBy }) =>
      settledBy === null ? [] : [{ ...settledBy, reason: "unbelieved", notBefore: null } as const],
    ),
    ...[...thin, ...named].map(
      (object) => ({ ...object, reason: "thin", notBefore: null }) as const,
    ),
    ...disputed.map((object) => ({ ...object, reason: "dispute", notBefore: null }) as const),
  ];
}

/** The reads that applying itself asks for: ties, and what was embedded without its state. */
export function readsAfter({ ties, unread }: Pick<Applied, "ties" | "unread">): WantedRefetch[] {
  return [
    ...ties.map(({ resource, id, updatedAt }) => {
      return { resource, id, reason: "tie", notBefore: settledFrom(updatedAt) } as const;
    }),
    ...unread.map((object) => ({ ...object, reason: "thin", notBefore: null }) as const),
  ];
}

/** The reads that alerts ask for: what an event left out of a decline. */
export const readsForAlerts = (missing: readonly MissingFact[]): WantedRefetch[] =>
  missing.map(({ resource, id }) => ({ resource, id, reason: "alert", notBefore: null }));

/** The objects of which an observation told without showing their state. */
export const partialObjects = (
  observations: readonly Observation[],
  outcomes: readonly Outcome[],
): ObjectKey[] =>
  outcomes.flatMap((outcome, n) => {
    const resource = observations[n]?.resource;
    return outcome.outcome === "thin" && resource !== undefined
      ? [{ resource, id: outcome.id }]
      : [];
  });
