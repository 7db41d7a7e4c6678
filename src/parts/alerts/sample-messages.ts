import { diskSpaceCondition, diskSpaceEnd } from "./rules/disk-space.ts";
import { type AlertContext, wordingOf } from "./alert-context.ts";
import { type CustomerInMessage, composeMessage, linksOf, noticedText } from "./compose-message.ts";
import type { AlertItem, AlertMessage, AlertSeverity } from "./message.ts";
import {
  missingEvents,
  missingRenewals,
  missingRetries,
  missingRun,
  neverScheduled,
  absenceEnds,
  absentReceiver,
  missingBackup,
  missingHeartbeats,
} from "./rules/absence.ts";
import { hostDownCondition, hostDownEnd, quarantinedConditions, quarantinedEnd } from "./rules/handler-hosts.ts";
import { cardNumberCondition } from "./rules/card-numbers.ts";
import { chargebackTimeline, ratioConditions, ratioEnd } from "./rules/chargebacks.ts";
import type { MisdatedObjects } from "../../core/mirror/misdated.ts";
import type { Chargeback } from "../../core/mirror/chargebacks.ts";
import type { DeclinedOrder } from "../../core/mirror/dunning/declined-orders.ts";
import { declineTimelines, lastRetryTransition } from "./rules/declines.ts";
import { type DigestEntry, digestWords, isNamed, namedEntries } from "./rules/digests.ts";
import {
  deadEventCondition,
  deadEventEnd,
  duplicateIdCondition,
  misdatedCondition,
  misdatedEnd,
} from "./rules/events.ts";
import {
  type RunOutcome,
  driftEnd,
  endpointCondition,
  endpointEnd,
  identityCondition,
  identityEnd,
  incompleteEnd,
  runConditions,
} from "./rules/reconciliation.ts";
import { consumerBehindCondition, consumerBehindEnd } from "./rules/feed-consumers.ts";
import { type HandlerState, handlerConditions, handlerEnds } from "./rules/handlers.ts";
import { partitionsCondition, partitionsEnd } from "./rules/partitions.ts";
import { signatureCondition, signatureEnds } from "./rules/signatures.ts";
import { tooManyValuesCondition, unknownValueCondition } from "./rules/unknown-values.ts";
import { type ListedAlert, endingOf, listItem, listTransition, stormEnd } from "./storms/list-storms.ts";
import { stormCondition, stormFamilies } from "./storms/storms.ts";
import {
  type Condition,
  type End,
  type Family,
  type Transition,
  type Timeline,
  type Subject,
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
    ...silenceSamples(alertContext, at),
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
  const { key, subject } = declineTimelines(afterTwo, wording)[0] ?? {
    key: "",
    subject: noSubject,
  };
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

const sampleMisdated: MisdatedObjects = {
  objects: 583,
  amounts: [{ currency: "eur", amountMinor: 2_332_000 }],
  example: { resource: "order", id: "sample-order", datedAt: new Date("2036-01-01T00:00:00Z") },
};

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
  const ratio = {
    brand: "visa",
    programme: "VAMP",
    disputes: 95,
    limit: 100,
    ratio: 0.83,
    isOver: false,
  };
  const [near, over] = [ratio, { ...ratio, disputes: 104, isOver: true }].map((each) =>
    ratioConditions(wording.rules, each, at).slice(-1),
  );
  return [
    ...told("a chargeback", {}),
    ...told("a chargeback, opened again", { opening: 2 }),
    ...told("a chargeback, refunded before", { refundedMinor: 2_000n }),
    ...told("a chargeback, lost", { state: "accepted" }),
    ...told("a chargeback, won", { state: "dismissed" }),
    ...conditionSamples([
      ["chargebacks near a threshold", near ?? []],
      ["chargebacks over a threshold", over ?? [], ratioEnd],
    ]),
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
    command: "node src/bin/tallyhook.js events list --resource sample-order",
    reason: "TypeError",
    failed: null,
  };
  const inbox = { spansAhead: 0, weeksAhead: 4 };
  const partitions = (where: "inbox" | "feed", isOverflowing: boolean) =>
    partitionsCondition(rules, where, { ...(where === "inbox" ? inbox : { spansAhead: 0 }), isOverflowing }, at);
  const disk = { folder: "/srv/tallyhook", freeBytes: 1_400_000_000, totalBytes: 20_000_000_000 };
  const status = { kind: "order.status", value: "in_review" };
  const twice = { eventId: "sample-event", bodies: 2 };
  const signatures = (kind: "failed" | "stale") => signatureCondition(rules, { kind, failures: 25, accepted: 66 }, at);
  return conditionSamples([
    ["a dead event", deadEventCondition(rules, dead, at), deadEventEnd({ ...dead, seq: "4711" })],
    ["an unknown status", unknownValueCondition(rules, status, at)],
    ["too many unknown values", tooManyValuesCondition(rules, "order.status", at)],
    ["an alert not composed", undescribedCondition(rules, undescribed, at), describedEnd],
    ["two events with one id", duplicateIdCondition(rules, twice, at)],
    ["objects dated in the future", misdatedCondition(rules, sampleMisdated, at), misdatedEnd],
    ["no partition ready", partitions("inbox", false), partitionsEnd("inbox")],
    ["events outside the partitions", partitions("inbox", true), partitionsEnd("inbox")],
    ["no partition ready in the feed", partitions("feed", false), partitionsEnd("feed")],
    ["a disk nearly full", diskSpaceCondition(rules, disk, at), diskSpaceEnd],
    ["a card number", cardNumberCondition(rules, found, at)],
    ["bad signatures", signatures("failed"), signatureEnds.failed],
    ["expired signatures", signatures("stale"), signatureEnds.stale],
  ]);
}

function silenceSamples(alertContext: AlertContext, at: Date): Sample[] {
  const context = { ...wordingOf(alertContext), at };
  const oldest = new Date(at.getTime() - 26 * hourMs);
  const missing = (count: number, example: string) => ({ count, oldest, examples: [example] });
  const watchedSince = oldest;
  const before = (hours: number) => new Date(at.getTime() - hours * hourMs);
  const gone = (what: string, key: keyof typeof absenceEnds, condition: Condition): Row => [
    what,
    condition,
    absenceEnds[key],
  ];
  const receiver = (unready: number) => absentReceiver({ lastReadyAt: before(24), unready }, context);
  const backup = missingBackup({ takenAt: before(48), triedSince: at }, context);
  const renewals = missing(12, "subscription sample-subscription");
  const consumer = {
    name: "shop.receipts",
    position: 4_711,
    movedAt: before(3),
    unreadSince: before(2),
  };
  const behind = consumerBehindCondition(consumer, context);
  const worker = missingHeartbeats("worker", missing(1, "worker:17:sample"), context);
  const scheduler = missingHeartbeats("scheduler", missing(1, "scheduler"), context);
  const run = missingRun({ last: oldest, watchedSince }, context);
  return [
    ...conditionSamples([
      gone("retries overdue", "silence:retry", missingRetries(missing(3, "order TEST0005"), context)),
      gone("renewals overdue", "silence:renewal", missingRenewals(renewals, context)),
      gone("no webhooks", "silence:events", missingEvents(before(2), context)),
      gone("no receiver", "silence:receiver", receiver(0)),
      gone("no backup", "silence:backup", backup),
      gone("a receiver that cannot store", "silence:receiver", receiver(2)),
      gone("a worker missing", "silence:worker", worker),
      gone("no scheduled tasks", "silence:scheduler", scheduler),
      ["a consumer of the feed behind", behind, consumerBehindEnd("shop.receipts")],
    ]),
    ...handlerSamples(alertContext, at),
    ...handlerHostSamples(alertContext, at),
    ...conditionSamples([
      ["scheduled tasks never started", neverScheduled(watchedSince, context)],
      gone("no reconciliation", "silence:reconcile", run),
      ["never reconciled", missingRun({ last: null, watchedSince }, context)],
    ]),
  ];
}

function handlerSamples(alertContext: AlertContext, at: Date): Sample[] {
  const destinationOf = (recipient: string) => (recipient === "forward:crm" ? "crm" : null);
  const context = { ...wordingOf(alertContext), at, destinationOf };
  const before = (hours: number) => new Date(at.getTime() - hours * hourMs);
  const name = "send-refund-receipt";
  const works: HandlerState = {
    name,
    source: "changes",
    pausedBy: null,
    pausedAt: null,
    pauseReason: null,
    dead: 0,
    deadSince: null,
    oldestDead: null,
    unreadSince: null,
    nextDueAt: null,
  };
  const destination: HandlerState = { ...works, name: "forward:crm" };
  const oldestDead = {
    seq: 4_711,
    kind: "order.refunded",
    resource: "order",
    id: "sample-order",
    error: "TypeError",
    holdsUp: 2,
  };
  const failed = "It failed for 20 objects in a row, the last time with:";
  const paused = { pausedBy: "failures", pausedAt: before(1), nextDueAt: before(2) } as const;
  const moved = {
    pausedBy: "person",
    pausedAt: before(20),
    pauseReason: "the mail server moves",
    unreadSince: before(19),
  } as const;
  const refused = {
    pausedBy: "subscriber",
    pausedAt: before(1),
    pauseReason: "It wants nothing more: crm.example.com answered 410 Gone.",
  } as const;
  const row = (what: string, kind: keyof typeof handlerConditions, state: HandlerState): Row => [
    what,
    handlerConditions[kind](state, context) ?? [],
    handlerEnds[kind](state.name, context),
  ];
  const dead = { dead: 3, deadSince: before(1) };
  const answered = { ...oldestDead, error: "crm.example.com answered 500" };
  return conditionSamples([
    row("dead changes of a handler", "dead", { ...works, ...dead, oldestDead }),
    row("a handler paused by failures", "paused", {
      ...works,
      ...paused,
      pauseReason: `${failed} MailServerError.`,
    }),
    row("a handler behind", "behind", { ...works, unreadSince: before(2) }),
    row("a handler that a person paused for long", "behind", { ...works, ...moved }),
    row("dead deliveries of a destination", "dead", {
      ...destination,
      ...dead,
      oldestDead: answered,
    }),
    row("a destination paused by failures", "paused", {
      ...destination,
      ...paused,
      pauseReason: `${failed} crm.example.com answered 500.`,
    }),
    ...(["changes", "webhooks"] as const).flatMap((source) => {
      const of = { ...destination, source };
      return [
        row(`a destination of ${source} that answered 410`, "refused", { ...of, ...refused }),
        row(`a destination of ${source} behind`, "behind", { ...of, unreadSince: before(2) }),
      ];
    }),
    row("a destination that a person paused for long", "behind", { ...destination, ...moved }),
  ]);
}

function handlerHostSamples(alertContext: AlertContext, at: Date): Sample[] {
  const context = { ...wordingOf(alertContext), at };
  const host = {
    files: ["handlers/send-refund-receipt.ts", "handlers/tell-the-shop.ts"],
    isApart: false,
    downSince: new Date(at.getTime() - 5 * 60_000),
    reason: "it said nothing for 30 s after its start",
    supervisors: 2,
  };
  const apart = {
    ...host,
    files: ["handlers/tell-the-shop.ts"],
    isApart: true,
    reason: "it exited with code 3, as by process.exit() in a handler",
    supervisors: 1,
  };
  const quarantined = quarantinedConditions([apart], context);
  return conditionSamples([
    ["the process of the handlers down", hostDownCondition([host], context) ?? [], hostDownEnd],
    ["a handler in quarantine", quarantined, quarantinedEnd("handlers/tell-the-shop.ts")],
  ]);
}

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
  const over = {
    ...listed,
    sinceThen: endingOf(family === "chargebacks" ? "accepted" : "recovered"),
  };
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
  const digest = {
    what: "the daily list",
    message: marked(digestSample(alertContext, at), "digest"),
  };
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
