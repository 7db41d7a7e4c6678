import type { RunOutcome } from "../../app/run-listener.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { type AlertContext, wordingOf } from "./alert-context.ts";
import { type CustomerInMessage, composeMessage, linksOf, noticedText } from "./compose-message.ts";
import type { End, Family } from "./condition.ts";
import type { AlertItem, AlertMessage, AlertSeverity } from "./message.ts";
import { cardNumberCondition } from "./rules/card-numbers.ts";
import { chargebackTimeline } from "./rules/chargebacks.ts";
import type { Chargeback } from "../../core/mirror/chargebacks.ts";
import type { DeclinedOrder } from "../../core/mirror/dunning/declined-orders.ts";
import { declineTimelines, lastRetryTransition } from "./rules/declines.ts";
import { type DigestEntry, digestWords, isNamed, namedEntries } from "./rules/digests.ts";
import { deadEventCondition, deadEventEnd, duplicateIdCondition } from "./rules/events.ts";
import {
  driftEnd,
  endpointCondition,
  endpointEnd,
  identityCondition,
  identityEnd,
  incompleteEnd,
  runConditions,
} from "./rules/reconciliation.ts";
import { tooManyValuesCondition, unknownValueCondition } from "./rules/unknown-values.ts";
import { watches } from "./rules/watches.ts";
import { conditionsOf, contextOf } from "./run-watch.ts";
import { type ListedAlert, endingOf, listItem, listTransition, stormEnd } from "./storms/list-storms.ts";
import { stormCondition, stormFamilies } from "./storms/storms.ts";
import {
  type Condition,
  type Subject,
  type Timeline,
  type Transition,
  conditionTimeline,
  endTransition,
  lastActiveTransition,
  noSubject,
} from "./timeline.ts";
import { describedEnd, undescribedCondition } from "./undescribed.ts";

/** A rule's message about made-up facts. */
interface Sample {
  /** The event, in a few words. */
  what: string;
  key: string;
  subject: Subject;
  stage: Transition;
  items?: readonly AlertItem[];
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** Belongs to no alert: acknowledging a sample, as its text suggests, changes nothing. */
const sampleAlert = 0;

/** A made-up customer, masked as every address is. */
const customer: CustomerInMessage = {
  person: "l…@c….example",
  facts: [
    { label: "Customer", value: "l…@c….example (sample-customer)" },
    { label: "Past due in total", value: "49.00 EUR" },
    { label: "Paid in total", value: "588.00 EUR" },
  ],
};

/** Every transition of every rule, with made-up facts around `at`. */
function allSamples(alertContext: AlertContext, at: Date): Sample[] {
  return [
    ...declineSamples(alertContext, at),
    ...chargebackSamples(alertContext, at),
    ...reconciliationSamples(alertContext, at),
    ...eventSamples(alertContext, at),
    ...watchSamples(alertContext, at),
    ...stormSamples(alertContext, at),
  ];
}

function declineSamples(alertContext: AlertContext, at: Date): Sample[] {
  const wording = wordingOf(alertContext);
  const tellAll = (what: string, order: DeclinedOrder): Sample[] =>
    declineTimelines(order, wording)
      .flatMap((each) => samplesOf(what, each))
      .slice(-1);
  const oneTime = { subscriptionId: null, cycle: null, dunning: [] };
  const first = { cycle: null, dunning: [] };
  const paid = { status: "succeeded", at, failureCode: null };
  const afterTwo = declined(at, "insufficient_funds", { tries: 2 });
  const lastTry = lastRetryTransition(
    { amount: "49.00 EUR", attempts: 3, retryAt: new Date(at.getTime() + dayMs) },
    wording,
    at,
  );
  const { key, subject } = declineTimelines(afterTwo, wording)[0] ?? { key: "", subject: noSubject };
  return [
    ...tellAll("an order, card expired", declined(at, "expired_card", oneTime)),
    ...tellAll("an order, fraud suspected", declined(at, "fraud_suspected", oneTime)),
    ...tellAll("a first payment", declined(at, "do_not_honor", first)),
    ...tellAll("a first payment, card blocked", declined(at, "blocked_card", first)),
    ...tellAll("a renewal, first attempt", declined(at, "insufficient_funds")),
    ...tellAll("a renewal, third attempt", declined(at, "insufficient_funds", { tries: 3 })),
    ...tellAll("a renewal, bank gave no reason", declined(at, "do_not_honor", { tries: 3 })),
    ...tellAll("a renewal, limit reached", declined(at, "card_limit_exceeded", { tries: 3 })),
    ...tellAll("a renewal, bank not reachable", declined(at, "issuer_unavailable", { tries: 3 })),
    ...tellAll("a renewal, card expired", declined(at, "expired_card")),
    ...tellAll("a renewal, card closed", declined(at, "closed_card")),
    ...tellAll("a renewal, fraud", declined(at, "lost_stolen_card")),
    ...tellAll("a renewal, our fault", declined(at, "invalid_merchant_configuration")),
    ...tellAll("a renewal, unknown code", declined(at, "velocity_rule_17")),
    { what: "a renewal, last retry ahead", key, subject, stage: lastTry },
    ...tellAll("a renewal, lost", declined(at, "insufficient_funds", { tries: 5, isFinal: true })),
    ...tellAll("a renewal, paid", { ...afterTwo, sales: [...afterTwo.sales, paid] }),
    ...tellAll("a renewal, canceled", {
      ...afterTwo,
      subscription: { status: "canceled", canceledAt: at, detail: null },
    }),
    ...tellAll("a renewal, voided", { ...afterTwo, status: "voided", voidedAt: at }),
  ];
}

/** An order with this many declined tries, one day apart, the last of them at `at`. */
function declined(
  at: Date,
  failureCode: string,
  { tries = 1, isFinal = false, ...fields }: Partial<DeclinedOrder> & Tries = {},
): DeclinedOrder {
  const times = Array.from({ length: tries }, (_, n) => {
    return new Date(at.getTime() - (tries - 1 - n) * dayMs);
  });
  return {
    id: "sample-order",
    orderNumber: "TEST0001",
    customerId: "sample-customer",
    status: "failed",
    totalMinor: 4_900n,
    currency: "EUR",
    subscriptionId: "sample-subscription",
    cycle: 7,
    cardBrand: "visa",
    cardLastFour: "4242",
    failureReason: null,
    sales: times.map((time) => ({ status: "failed", at: time, failureCode })),
    failures: times.map((time) => ({ at: time, failureCode })),
    dunning: times.map((time, n) => ({
      at: time,
      attempt: n + 1,
      nextRetryAt: isFinal && n === tries - 1 ? null : new Date(time.getTime() + dayMs),
      isRetryUnknown: false,
    })),
    payments: [],
    firstAttempt: 1,
    voidedAt: null,
    subscription: null,
    ...fields,
  };
}

interface Tries {
  tries?: number;
  isFinal?: boolean;
}

const sampleChargeback = (at: Date): Chargeback => ({
  key: "sample-order",
  opening: 1,
  orderId: "sample-order",
  transactionId: "sample-sale",
  customerId: "sample-customer",
  orderNumber: "TEST0002",
  state: "opened",
  amountMinor: 12_000n,
  currency: "EUR",
  openedAt: at,
  resolvedAt: at,
  refundedMinor: 0n,
  cardBrand: "visa",
  cardLastFour: "4242",
});

function chargebackSamples(alertContext: AlertContext, at: Date): Sample[] {
  const wording = wordingOf(alertContext);
  const chargeback = sampleChargeback(at);
  const told = (what: string, fields: Partial<Chargeback>): Sample[] =>
    samplesOf(what, chargebackTimeline({ ...chargeback, ...fields }, wording)).slice(-1);
  return [
    ...told("a chargeback", {}),
    ...told("a chargeback, opened again", { opening: 2 }),
    ...told("a chargeback, refunded before", { refundedMinor: 2_000n }),
    ...told("a chargeback, lost", { state: "accepted" }),
    ...told("a chargeback, won", { state: "dismissed" }),
  ];
}

function reconciliationSamples(alertContext: AlertContext, at: Date): Sample[] {
  const { rules } = wordingOf(alertContext);
  const run: RunOutcome = {
    id: 12,
    kind: "nightly",
    isInitialImport: false,
    complete: true,
    error: null,
    healed: { missing_here: 2 },
    left: {},
    acknowledged: {},
    amountAtRiskMinor: {},
    slices: { failed: 0, pending: 0 },
    confirmed: {},
  };
  const left = { left: { mismatch: 1 }, amountAtRiskMinor: { eur: 4_900n } };
  const cut = { complete: false, error: "the service did not answer", healed: {} };
  const broken = {
    name: "one_sale",
    severity: "critical" as const,
    breaches: 2,
    amountAtRisk: [{ currency: "eur", amountMinor: 9_800n }],
    examples: ["order TEST0003", "order TEST0004"],
  };
  const endpoint = {
    key: "endpoint:disabled:sample-endpoint",
    severity: "critical" as const,
    says: "the endpoint sample-endpoint is disabled: no event arrives through it",
    remedy: "enable it at the service",
  };
  const done = { id: 13, complete: true };
  const notDone = { id: 13, complete: false };
  const differing = runConditions(rules, { ...run, ...left }, at);
  const incomplete = runConditions(rules, { ...run, ...cut, left: {} }, at);
  return conditionSamples([
    ["differences healed", runConditions(rules, run, at)],
    ["differences left", differing, driftEnd(done), driftEnd(notDone)],
    ["a run incomplete", incomplete, incompleteEnd(done), incompleteEnd(notDone)],
    ["an invariant broken", identityCondition(rules, broken, at), identityEnd],
    ["the endpoint disabled", endpointCondition(rules, endpoint, at), endpointEnd],
  ]);
}

function eventSamples(alertContext: AlertContext, at: Date): Sample[] {
  const { rules } = wordingOf(alertContext);
  const dead = {
    eventId: "sample-event",
    seq: 4_711,
    type: "order.failed",
    reason: "the amount is not a whole number",
  };
  const found = { resource: "order", id: "sample-order", path: "metadata.note" };
  const undescribed = {
    resource: "order",
    id: "sample-order",
    orderNumber: "TEST0006",
    money: "4900 minor units of EUR",
    command: tallyhook("events list --resource sample-order"),
    reason: "TypeError",
    failed: null,
  };
  const status = { kind: "order.status", value: "in_review" };
  const twice = { eventId: "sample-event", bodies: 2 };
  return conditionSamples([
    ["a dead event", deadEventCondition(rules, dead, at), deadEventEnd({ ...dead, seq: "4711" })],
    ["an unknown status", unknownValueCondition(rules, status, at)],
    ["too many unknown values", tooManyValuesCondition(rules, "order.status", at)],
    ["an alert not composed", undescribedCondition(rules, undescribed, at), describedEnd],
    ["two events with one id", duplicateIdCondition(rules, twice, at)],
    ["a card number", cardNumberCondition(rules, found, at)],
  ]);
}

/** The messages of each watch about made-up facts. An end appears once, however many conditions share it. */
const watchSamples = (alertContext: AlertContext, at: Date): Sample[] =>
  watches.flatMap((watch) => {
    const ever = 27 * hourMs;
    const watched = { first: new Date(at.getTime() - ever), everMs: ever, steadyMs: ever, gapMs: 0 };
    const context = { ...contextOf(alertContext, watch, watched), at };
    const known = new Set<string>();
    return conditionSamples(
      watch.examples(context).map(({ what, begun, end }): Row => {
        const isKnown = known.size === known.add(end.title).size;
        return [what, conditionsOf(watch, begun, context), ...(isKnown ? [] : [end])];
      }),
    );
  });

function stormSamples(alertContext: AlertContext, at: Date): Sample[] {
  const { settings } = alertContext;
  const counts = { alerts: 64, limit: 20, minutes: 10, at };
  return Object.keys(stormFamilies).flatMap((family) => {
    const isMoney = family.endsWith("declines") || family === "chargebacks";
    const sums = isMoney ? [{ currency: "EUR", amountMinor: 313_600n, unknown: 0 }] : [];
    const codes = family.endsWith("declines") ? { do_not_honor: 60, expired_card: 4 } : {};
    const storm = stormCondition(settings, family as Family, { ...counts, sums, codes });
    const none = { currency: null, amountMinor: null, unknown: 63 };
    const over = [{ toldHow: "at_end", alerts: 63, ...none } as const];
    const counted = sums.map((sum) => ({ toldHow: "at_end", alerts: 63, ...sum }) as const);
    const end = stormEnd(family as Family, isMoney ? counted : over);
    return [
      ...conditionSamples([[`a storm of ${family}`, storm, end]]),
      ...(isMoney ? listSamples(alertContext, family as Family, at) : []),
    ];
  });
}

/**
 * The two lists of a storm: the alerts that could not wait, some of them already over, and those that were held back.
 */
function listSamples(alertContext: AlertContext, family: Family, at: Date): Sample[] {
  const timeline =
    family === "chargebacks"
      ? chargebackTimeline(sampleChargeback(at), wordingOf(alertContext))
      : declineTimelines(declined(at, "expired_card"), wordingOf(alertContext))[0];
  if (timeline === undefined) return [];
  const { rule, severity, title, advice } = lastActiveTransition(timeline);
  const { amountMinor, currency } = timeline;
  const listed: ListedAlert = {
    id: sampleAlert,
    rule,
    severity,
    title,
    advice,
    amountMinor,
    currency,
    sinceThen: null,
    customer: "l…@c….example (sample-customer)",
  };
  const over = { ...listed, sinceThen: endingOf(family === "chargebacks" ? "accepted" : "recovered") };
  const one = { part: 1, parts: 1, at };
  return [
    { cannotWait: true, number: 1, alerts: [listed, listed, over] },
    { cannotWait: false, number: 2, alerts: [listed, { ...listed, customer: null }] },
  ].map((list) => ({
    what: `a storm of ${family}: ${list.cannotWait ? "what cannot wait" : "what was held back"}`,
    key: `storm:${family}`,
    subject: noSubject,
    stage: listTransition(family, { ...list, ...one }),
    items: list.alerts.map(listItem),
  }));
}

function samplesOf(what: string, timeline: Timeline): Sample[] {
  const { key, subject, stages } = timeline;
  return stages.map((stage) => ({ what, key, subject, stage }));
}

/** The event, the rule's condition for it, and the end of the condition. */
type Row = readonly [what: string, begins: Condition | readonly Condition[], ...ends: readonly End[]];

/** The start of each condition, and for the last one of a row each of its ends. */
function conditionSamples(rows: readonly Row[]): Sample[] {
  return rows.flatMap(([what, begins, ...ends]) => {
    const conditions = [begins].flat();
    const timelines = conditions.map((each) => conditionTimeline(each, null));
    const begun = timelines.flatMap((timeline) => samplesOf(what, timeline));
    const [last, timeline] = [conditions.at(-1), timelines.at(-1)];
    if (last === undefined || timeline === undefined) return begun;
    const { key, subject, facts } = timeline;
    const over = ends.map((end) => endTransition({ ...last, facts }, end, last.at));
    return [...begun, ...over.map((stage) => ({ what: `${what}: over`, key, subject, stage }))];
  });
}

/** The daily list, with one entry of each kind. */
function digestSample(alertContext: AlertContext, at: Date): Omit<AlertMessage, "dedupKey" | "idempotencyKey"> {
  const entry = (n: number, fields: Partial<DigestEntry>): DigestEntry => ({
    alertId: sampleAlert,
    section: "lost",
    amountMinor: 4_900n,
    currency: "EUR",
    person: customer.person,
    orderNumber: `TEST000${n}`,
    failureCode: "insufficient_funds",
    attempts: 5,
    nextRetryAt: new Date(at.getTime() + dayMs),
    ending: null,
    healed: 0,
    ...fields,
  });
  const entries = [
    entry(1, {}),
    entry(2, { amountMinor: 12_000n, person: null }),
    entry(3, { section: "last-try", attempts: 3 }),
    entry(4, { section: "order", attempts: 1, failureCode: "expired_card" }),
    entry(5, { section: "over", attempts: 2, ending: "recovered" }),
    entry(6, { section: "over", attempts: 4, ending: "canceled" }),
    entry(7, { section: "healed", healed: 3 }),
    ...[8, 9, 10].map((id) => entry(id, { section: "waiting", attempts: 1 })),
  ];
  return {
    action: "trigger",
    rule: "digest",
    stage: "digest",
    links: [],
    at: at.toISOString(),
    ...digestWords([...namedEntries(entries), ...entries.filter((entry) => !isNamed(entry))], wordingOf(alertContext)),
  };
}

export interface SampleMessage {
  /** The event, in a few words. */
  what: string;
  message: AlertMessage;
}

export interface SampleOptions {
  channel: string;
  /** Distinguishes test runs, so that no channel takes one for a repeat. */
  run: string;
  at: Date;
  /** Every transition of every rule; otherwise one of each severity, the daily list, and an end. */
  all: boolean;
  /** Also ends each sample that began, so that channels that keep incidents are left clean. */
  endsAll: boolean;
}

/** Every rule's messages about made-up facts under the settings of this deployment, marked as tests. */
export function sampleMessages(
  alertContext: AlertContext,
  { channel, run, at, all, endsAll }: SampleOptions,
): SampleMessage[] {
  const told = allSamples(alertContext, at).map((sample, n) => ({ ...sample, n }));
  const chosen = all ? told : oneOfEach(told);
  const digest = { what: "the daily list", message: marked(digestSample(alertContext, at), "digest") };
  const begun = chosen.map((sample) => ({ what: sample.what, message: messageOf(sample) }));
  const triggers = [...begun, digest].filter(({ message }) => message.action === "trigger");
  const ends = triggers
    .filter(({ message }) => endsAll && message.action === "trigger")
    .map(({ what, message }) => ({ what: `over: ${what}`, message: endOf(message) }));
  return [...begun, digest, ...ends];

  function messageOf({ stage, key, subject, items, n }: Sample & { n: number }): AlertMessage {
    const message = composeMessage({
      key,
      occurrence: 1,
      channel,
      stage,
      ...(items === undefined ? { alertId: sampleAlert, noticed: noticedText(alertContext, stage, at) } : { items }),
      customer: stage.headline === undefined ? null : customer,
      links: linksOf(alertContext.settings.links, subject),
    });
    return marked(message, `${n}`);
  }

  function marked(message: Omit<AlertMessage, "dedupKey" | "idempotencyKey">, name: string): AlertMessage {
    return {
      ...message,
      dedupKey: `test:${run}:${name}`,
      idempotencyKey: `test:${run}:${name}:${message.action}`,
      title: `TEST ${message.title}`,
      advice: `This is a test: nothing happened. ${message.advice}`,
    };
  }

  function endOf(message: AlertMessage): AlertMessage {
    return {
      ...message,
      action: "resolve",
      stage: "resolved",
      idempotencyKey: `${message.dedupKey}:resolve`,
      advice: "This is a test: nothing happened. The test alert is over.",
    };
  }
}

/** For each severity the first sample that begins an alert, and the first sample that ends one. */
function oneOfEach<S extends Sample>(samples: readonly S[]): S[] {
  const severities: readonly AlertSeverity[] = ["critical", "error", "warning", "info"];
  const first = severities.flatMap(
    (severity) => samples.find(({ stage }) => stage.severity === severity && stage.change !== "resolved") ?? [],
  );
  return [...first, ...samples.filter(({ stage }) => stage.change === "resolved").slice(0, 1)];
}
