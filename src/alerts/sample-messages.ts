import type { AlertFact, AlertItem, AlertMessage, AlertSeverity } from "./message.ts";

interface Sample {
  kind: string;
  severity: AlertSeverity;
  rule: string;
  stage: string;
  title: string;
  facts: readonly AlertFact[];
  advice: string;
  items?: readonly AlertItem[];
}

const facts = (told: Readonly<Record<string, string>>): AlertFact[] =>
  Object.entries(told).map(([label, value]) => ({ label, value }));

const samples: readonly Sample[] = [
  {
    kind: "decline",
    severity: "warning",
    rule: "decline",
    stage: "declined",
    title: "Order TEST0001 was declined: 49.00 EUR",
    facts: facts({ Customer: "t•••@example.com", Card: "•••• 4242", Code: "insufficient_funds" }),
    advice: "Wait: the customer can pay again.",
  },
  {
    kind: "dunning",
    severity: "error",
    rule: "dunning",
    stage: "last retry",
    title: "Last retry of a renewal is near: 29.00 EUR",
    facts: facts({ Customer: "t•••@example.com", Card: "•••• 4242", Attempt: "3", Cycle: "7" }),
    advice: "Contact the customer now.",
  },
  {
    kind: "chargeback",
    severity: "critical",
    rule: "chargeback",
    stage: "opened",
    title: "Chargeback on order TEST0002: 120.00 EUR",
    facts: facts({ Customer: "t•••@example.com", Card: "•••• 4242" }),
    advice: "Gather the evidence and answer in time.",
  },
  {
    kind: "reconciliation",
    severity: "error",
    rule: "reconcile_drift",
    stage: "drift",
    title: "The nightly run found 3 differences and healed 2",
    facts: facts({ Run: "test", Found: "3", Healed: "2" }),
    advice: 'Look at "tallyhook report exceptions".',
  },
  {
    kind: "silence",
    severity: "critical",
    rule: "silence_events",
    stage: "silent",
    title: "No events for an hour that is usually busy",
    facts: facts({ "Usual in this hour": "240", "Last event": "61 minutes ago" }),
    advice: 'Run "tallyhook doctor" and look at the endpoint.',
  },
  {
    kind: "digest",
    severity: "info",
    rule: "digest",
    stage: "hourly",
    title: "2 first declines in the last hour",
    facts: [],
    advice: "Nothing to do: both are retried.",
    items: [
      { title: "Order TEST0003: 15.00 EUR", facts: facts({ Code: "do_not_honor" }) },
      { title: "Order TEST0004: 20.00 EUR", facts: facts({ Code: "insufficient_funds" }) },
    ],
  },
];

/** Of which sample the last message is the end. */
const resolvedKind = "dunning";

export interface SampleMessage {
  kind: string;
  message: AlertMessage;
}

/**
 * One message of each kind, and one that ends an alert, all marked as tests. `run` tells one test from another, so
 * that no channel takes them for repeats. Where `endsAll`, each that was begun is ended: a channel that keeps
 * incidents is left as it was.
 */
export function sampleMessages({
  run,
  at,
  endsAll,
}: {
  run: string;
  at: Date;
  endsAll: boolean;
}): SampleMessage[] {
  const begun = samples.map((sample) => ({
    kind: sample.kind,
    message: messageOf(sample, "trigger"),
  }));
  const ended = samples
    .filter(({ kind }) => endsAll || kind === resolvedKind)
    .map((sample) => ({ kind: "resolve", message: messageOf(sample, "resolve") }));
  return [...begun, ...ended];

  function messageOf(sample: Sample, action: "trigger" | "resolve"): AlertMessage {
    const { kind, title, stage, ...told } = sample;
    const isOver = action === "resolve";
    return {
      ...told,
      dedupKey: `test:${kind}:${run}`,
      idempotencyKey: `test:${kind}:${run}:${action}`,
      action,
      stage: isOver ? "resolved" : stage,
      title: `TEST, nothing to do: ${title}`,
      advice: isOver ? "" : sample.advice,
      links: [],
      at: at.toISOString(),
    };
  }
}
