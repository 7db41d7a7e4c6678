import type { AlertFact, AlertSeverity } from "../message.ts";
import type { RuleName } from "../settings.ts";
import { worstOf } from "./condition.ts";
import type { KnownCondition } from "./condition.ts";
import type { Stage } from "./story.ts";
import { headlineText, short } from "./wording.ts";

/** What is said when a condition is over: that it is, and what matters now. */
export interface End {
  title: string;
  advice: string;
  facts?: readonly AlertFact[];
}

const unsentComesBack = '"npx tallyhook reconcile" brings what was missed meanwhile';

/** The silences that end by themselves, by their keys. */
export const silenceEnds = {
  "silence:retry": {
    title: "No retry is overdue any more",
    advice:
      "They came, or their orders were paid or given up. If somebody charged one by hand meanwhile, see that nobody paid " +
      'twice: "npx tallyhook report exceptions".',
  },
  "silence:renewal": {
    title: "No renewal is overdue any more",
    advice:
      "They were charged, or their subscriptions ended. If somebody charged one by hand meanwhile, see that nobody paid " +
      'twice: "npx tallyhook report exceptions".',
  },
  "silence:events": {
    title: "Webhooks arrive again",
    advice: `Run it now: ${unsentComesBack}.`,
  },
  "silence:worker": {
    title: "No worker is missing any more",
    advice:
      '"npx tallyhook doctor" shows whether events still wait. If nobody restarted it on purpose, its log says why it ' +
      "stopped.",
  },
  "silence:scheduler": {
    title: "Scheduled tasks start again",
    advice: 'If the nightly run was due meanwhile, it was not made: "npx tallyhook reconcile".',
  },
  "silence:reconcile": {
    title: "Mirror and service were compared again",
    advice: '"npx tallyhook findings list" shows what the run found; nothing else is left to do.',
  },
} as const satisfies Readonly<Record<string, End>>;

export const signatureEnds = {
  failed: {
    title: "Webhook signatures verify again",
    advice: `If the secret was the reason, what was refused were real events: ${unsentComesBack}.`,
  },
  stale: {
    title: "Webhooks are signed in time again",
    advice: `If the clock was the reason, what was refused were real events: ${unsentComesBack}.`,
  },
} as const satisfies Readonly<Record<string, End>>;

/** Of differences that a later run has compared anew. Pure. */
export function driftEnd({ id, complete }: { id: number; complete: boolean }): End {
  return {
    title: `Differences compared anew by run ${id}`,
    advice: complete
      ? `What is still different stands in the alert on run ${id} ("npx tallyhook alerts list --rule reconcile_drift"); ` +
        "where there is none, mirror and service are equal."
      : `Run ${id} did not read everything, so this may not be all: go by what it tells ("npx tallyhook alerts list").`,
  };
}

/** Of a run that was incomplete, when a later one has ended. Pure. */
export function incompleteEnd({ id, complete }: { id: number; complete: boolean }): End {
  return complete
    ? {
        title: `Reconciliation complete again (run ${id})`,
        advice:
          'All that was not read has been. "npx tallyhook findings list" shows what was found; nothing else is left to do.',
      }
    : {
        title: `A later reconciliation was INCOMPLETE as well (run ${id})`,
        advice:
          `The alert on run ${id} has the reason as it is now: ` +
          '"npx tallyhook alerts list --rule reconcile_incomplete".',
      };
}

export const identityEnd: End = {
  title: "A broken rule of the records holds again",
  advice:
    'No record breaks it any more. "npx tallyhook findings list" shows what is still open; a customer who was charged ' +
    "twice has to see the refund.",
};

export const endpointEnd: End = {
  title: "Webhook endpoint in order again",
  advice: `Run it now: ${unsentComesBack}.`,
};

export const ratioEnd: End = {
  title: "Chargebacks no longer at a card network's threshold",
  advice:
    "Each month counts from zero, so this may be the calendar alone: go on with what was begun. " +
    '"npx tallyhook report network-monitor" shows how this month stands.',
};

/** Of an event that was replayed. Pure. */
export function deadEventEnd({ seq, type }: { seq: string; type: string | null }): End {
  return {
    title: headlineText({
      lead: `1 event was taken after all (${short(type ?? "no type", 30)}, number ${seq})`,
    }),
    advice:
      "The mirror has what it tells, or something newer. Whether others failed for the same cause: " +
      '"npx tallyhook events list --state dead".',
  };
}

export const describedEnd: End = {
  title: "An alert that could not be described has been described",
  advice: 'What happened stands in an alert of its own: "npx tallyhook alerts list".',
};

export const healedByHandEnd: End = {
  title: "An object dated in the future was written by hand, as the service shows it",
  advice: "Who decided it and why is kept with the change. Nothing is left to do.",
};

/** The last stage of a condition. Pure. */
export function endStage(
  { rule, severity, facts }: EndedCondition,
  { title, advice, facts: more = [] }: End,
  at: Date,
): Stage {
  return {
    name: "resolved",
    change: "resolved",
    at,
    rule,
    severity,
    title,
    advice,
    facts: [...worstOf(facts), ...more],
    canWait: false,
  };
}

export interface EndedCondition {
  rule: RuleName;
  severity: AlertSeverity;
  /** What is stored of it. */
  facts: KnownCondition["facts"];
}
