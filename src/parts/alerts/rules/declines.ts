import type { Knex } from "knex";
import { moneyText } from "../../../platform/money.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type AlertContext, type RuleWording, wordingOf } from "../alert-context.ts";
import type { AlertFact, AlertSeverity } from "../message.ts";
import { type Announcement, announce } from "../outbox/announce.ts";
import type { RuleName } from "../settings.ts";
import { writeHistory } from "../store.ts";
import { type FactTimeline, type Transition, noSubject } from "../timeline.ts";
import {
  type DeclineGroup,
  type DeclineKind,
  type DeclineRequest,
  causeOf,
  declineAdvice,
  declineGroupOf,
  groupNames,
  requestOf,
} from "../../../core/mirror/dunning/decline-groups.ts";
import {
  type Attempt,
  type DeclinedOrder,
  type NextRetry,
  declinedAttempts,
  declinedParts,
  isFirstCharge,
  nextRetryAfter,
  paidAt,
} from "../../../core/mirror/dunning/declined-orders.ts";
import { type Headline, orderName, ordinal, titled } from "./wording.ts";

interface Told extends RuleWording {
  order: DeclinedOrder;
  kind: DeclineKind;
  /** The number of times that it was declined and paid before. */
  earlier: number;
}

/**
 * The timelines of a declined charge, oldest first: one, and one more for each time that it was paid and failed again.
 * Empty without a decline.
 */
export function declineTimelines(order: DeclinedOrder, wording: RuleWording): FactTimeline[] {
  const kind = kindOf(order);
  const timelines: FactTimeline[] = [];
  for (const part of declinedParts(order)) {
    const told = { order: part, kind, earlier: timelines.length, ...wording };
    const timeline = declineTimeline(told);
    if (timeline !== null) timelines.push(timeline);
  }
  return timelines;
}

/** For each of the four cases of `order.failed`: one-time, first charge, in dunning, final. */
function declineTimeline(told: Told): FactTimeline | null {
  const { order } = told;
  const attempts = declinedAttempts(order);
  const [first] = attempts;
  const last = attempts.at(-1);
  if (first === undefined || last === undefined) return null;
  const end = endStage(told, last);
  const next = nextRetryAfter(order, last.number);
  // Once a decline has ended, the planned retry is not shown: titles have none, facts have "unknown".
  const ahead = end === null ? next : "unknown";
  const stages: [Transition, ...Transition[]] = [attemptStage(told, first, ahead, "opened")];
  for (const attempt of attempts.slice(1)) {
    stages.push(attemptStage(told, attempt, ahead, "updated"));
  }
  markRepeats(told, attempts, stages);
  const final = told.kind === "renewal" ? finalAttempt(order, attempts, next) : null;
  if (final !== null) stages.push(finalStage(told, final));
  if (end !== null) stages.push(end);
  return {
    key: keyOf(told),
    occurrence: told.earlier + 1,
    subject: {
      orderId: order.id,
      subscriptionId: order.subscriptionId,
      transactionId: null,
      customerId: order.customerId,
    },
    amountMinor: order.totalMinor,
    currency: order.currency,
    facts: {
      order_number: order.orderNumber,
      cycle: order.cycle,
      failure_code: last.failureCode,
      group: declineGroupOf(last.failureCode),
      attempts: last.number,
      next_retry_at: end === null && next instanceof Date ? next.toISOString() : null,
      retry_is_unknown: end === null && told.kind === "renewal" && next === "unknown",
      is_final: final !== null,
      // Among declines only fraud escalates; the others are on the daily list.
      escalates: attempts.some(({ failureCode }) => declineGroupOf(failureCode) === "fraud"),
    },
    family: "declines",
    stages,
  };
}

function kindOf(order: DeclinedOrder): DeclineKind {
  if (order.subscriptionId === null) return "one-time";
  return isFirstCharge(order) ? "first" : "renewal";
}

function keyOf({ order, kind }: Told): string {
  if (kind === "one-time") return `decline:${order.id}`;
  return `dunning:${order.subscriptionId}:${kind === "first" ? "first" : order.cycle}`;
}

const ruleOf: Readonly<Record<DeclineKind, "decline" | "dunning_first" | "dunning_renewal">> = {
  "one-time": "decline",
  first: "dunning_first",
  renewal: "dunning_renewal",
};

function attemptStage(told: Told, attempt: Attempt, next: NextRetry, change: "opened" | "updated"): Transition {
  const { order, kind, rules, localTime, shortTime } = told;
  const rule = ruleOf[kind];
  const group = declineGroupOf(attempt.failureCode);
  const isHigh = isHighAmount(told);
  const isUrgent = group === "fraud" || isHigh;
  const severity: AlertSeverity = isUrgent ? "critical" : rules[rule].severity;
  const request = requestFor(told, attempt);
  const nextTry = kind === "renewal" && next instanceof Date ? next : null;
  const isCounted = kind === "renewal" || attempt.number > 1;
  return {
    name: `attempt:${attempt.number}`,
    change,
    at: attempt.at,
    rule,
    severity,
    ...titled({
      lead: `${leadTexts[kind](order)} declined${isCounted ? ` (${ordinal(attempt.number)} attempt)` : ""}`,
      cause: causeOf(attempt.failureCode),
      next: nextText(request, kind, nextTry === null ? null : shortTime(nextTry)),
    }),
    advice: declineAdvice({
      code: attempt.failureCode,
      request,
      kind,
      nextRetry: nextTry === null ? null : localTime(nextTry),
      isLastRetryAhead: attempt.number >= rules.dunning_last_retry.lastAttempt,
    }),
    facts: factsOf(told, attempt, group, next),
    evenInStorm: isUrgent,
    canWait: severity !== "critical" && canWait(request, kind),
  };
}

/** Contacting a shopper about a one-time order can wait for the daily list. Contacting a subscriber cannot. */
const canWait = (request: DeclineRequest, kind: DeclineKind): boolean =>
  request === "wait" || (kind === "one-time" && ["contact", "new-card", "call-bank"].includes(request));

function requestFor(told: Told, { number, failureCode }: Attempt): DeclineRequest {
  const { kind, rules } = told;
  const contactsNow = isHighAmount(told) || number >= rules.dunning_renewal.contactAtAttempt;
  return requestOf(declineGroupOf(failureCode), { kind, contactsNow });
}

/** A later attempt does not repeat the request of an earlier one. */
function markRepeats(told: Told, attempts: readonly Attempt[], stages: Transition[]): void {
  const asked = new Map<DeclineRequest, string>();
  for (const [n, attempt] of attempts.entries()) {
    const request = requestFor(told, attempt);
    const stage = stages[n];
    const earlier = asked.get(request);
    if (stage === undefined || request === "wait") continue;
    if (earlier === undefined) asked.set(request, stage.name);
    else stage.repeats = earlier;
  }
}

const leadTexts: Readonly<Record<DeclineKind, (order: DeclinedOrder) => string>> = {
  "one-time": (order) => [amountOf(order), orderName(order.orderNumber) ?? "order"].join(" "),
  first: (order) => `${amountOf(order)} first payment`,
  renewal: (order) => `${amountOf(order)} renewal`,
};

function nextText(request: DeclineRequest, kind: DeclineKind, nextTry: string | null): string | null {
  if (request === "stop") return "Do not charge again";
  if (request === "page-engineering") return "Page engineering";
  if (kind === "first") return "No retry follows";
  return nextTry === null ? null : `Next retry ${nextTry}`;
}

/** The first attempt that was reported as having no further retry. */
function finalAttempt({ dunning }: DeclinedOrder, attempts: readonly Attempt[], next: NextRetry): Attempt | null {
  const last = attempts.at(-1) ?? null;
  const said = dunning.find(({ nextRetryAt, isRetryUnknown }) => {
    return nextRetryAt === null && !isRetryUnknown;
  });
  if (said === undefined) return next === null ? last : null;
  return attempts.find(({ number }) => number === said.attempt) ?? last;
}

/** The headline of a renewal that no retry will save, also on the daily list. */
export const lostHeadline = (amount: string, tries: number): Headline => ({
  lead: `LOST ${amount} renewal`,
  cause: `${counted(tries, "attempt")} declined`,
  next: "Collect or cancel",
});

function finalStage(told: Told, attempt: Attempt): Transition {
  const { order, rules } = told;
  const severity = isHighAmount(told) ? "critical" : rules.dunning_final.severity;
  return {
    name: "final",
    change: "updated",
    at: attempt.at,
    rule: "dunning_final",
    severity,
    ...titled(lostHeadline(amountOf(order), attempt.number)),
    advice:
      "No retry follows. Ask the customer to pay another way (a new order with another card, a bank transfer), or " +
      "cancel the subscription so that you deliver nothing unpaid. Retry by hand at the service only after the " +
      "customer confirms that the card will work.",
    facts: factsOf(told, attempt, declineGroupOf(attempt.failureCode), null),
    canWait: severity !== "critical",
    evenInStorm: true,
  };
}

function endStage(told: Told, last: Attempt): Transition | null {
  const { order, kind, rules } = told;
  const paid = paidAt(order);
  const { status, canceledAt } = order.subscription ?? { status: null, canceledAt: null };
  const ends: (readonly [DeclineEnding, Date])[] = [];
  if (status === "canceled" && canceledAt !== null) ends.push(["canceled", canceledAt]);
  if (order.voidedAt !== null) ends.push(["voided", order.voidedAt]);
  const [ended] =
    paid === null ? ends.sort(([, a], [, b]) => a.getTime() - b.getTime()) : [["recovered", paid] as const];
  if (ended === undefined) return null;
  const [ending, at] = ended;
  const rule: RuleName = ruleOf[kind];
  const group = declineGroupOf(last.failureCode);
  return {
    name: ending,
    change: "resolved",
    at,
    rule,
    severity: rules[rule].severity,
    ...titled(endHeadline(leadTexts[kind](order), { ending, tries: last.number })),
    advice:
      paid === null
        ? "Stop collecting this payment. If you delivered anything for it, write it off or invoice it yourself."
        : "Stop reminding the customer. Restore access, and release deliveries that you held back.",
    facts: [
      { label: paid === null ? "Lost" : "Recovered", value: amountOf(order) },
      { label: "Declined attempts", value: String(last.number) },
      ...factsOf(told, last, group, "unknown").filter(({ label }) => ["Order", "Subscription"].includes(label)),
    ],
    canWait: !isHighAmount(told) && group !== "fraud",
  };
}

/** The headline of the end of dunning, also on the daily list. */
export const endHeadline = (what: string, { ending, tries }: { ending: DeclineEnding; tries: number }): Headline => ({
  lead: `${what} ${ending === "recovered" ? "recovered" : "lost"}`,
  cause: `${endingCauses[ending]}after ${counted(tries, "declined attempt")}`,
});

/** The ends of a decline: it is paid, its subscription is canceled, or the order is voided. */
export type DeclineEnding = "recovered" | "canceled" | "voided";

const endingCauses: Readonly<Record<DeclineEnding, string>> = {
  recovered: "",
  canceled: "subscription canceled ",
  voided: "order voided ",
};

/** The last end among these transitions; null where there is none. */
export const endingIn = (stages: readonly string[]): DeclineEnding | null =>
  stages.findLast((name): name is DeclineEnding => Object.hasOwn(endingCauses, name)) ?? null;

function factsOf(told: Told, attempt: Attempt, group: DeclineGroup, next: NextRetry): AlertFact[] {
  const { order, kind, earlier, localTime } = told;
  const facts: AlertFact[] = [
    { label: "Amount", value: amountOf(order) },
    { label: "Order", value: order.orderNumber ?? order.id },
  ];
  if (order.cardLastFour !== null) {
    const brand = order.cardBrand === null ? "" : `${order.cardBrand} `;
    facts.push({ label: "Card", value: `${brand}•••• ${order.cardLastFour}` });
  }
  facts.push(
    { label: "Decline code", value: attempt.failureCode ?? "none given" },
    { label: "Kind of decline", value: groupNames[group] },
    { label: "Declined", value: `${localTime(attempt.at)} (${ordinal(attempt.number)} attempt)` },
  );
  if (earlier > 0) facts.push({ label: "Before", value: "it was paid, and has failed again" });
  if (kind === "renewal") facts.push({ label: "Next retry", value: retryText(next, localTime) });
  if (order.subscriptionId !== null) {
    const renewal = kind === "first" ? "first payment" : `renewal ${order.cycle}`;
    facts.push({ label: "Subscription", value: `${order.subscriptionId} (${renewal})` });
  }
  return facts;
}

function retryText(next: NextRetry, localTime: Told["localTime"]): string {
  if (next === null) return "none: this was the last attempt";
  return next === "unknown" ? "unknown" : localTime(next);
}

const amountOf = ({ totalMinor, currency }: DeclinedOrder): string => moneyText(totalMinor, currency);

/** A renewal has one threshold from its first decline to its loss. */
function isHighAmount({ order: { totalMinor, currency }, kind, rules }: Told): boolean {
  const limit = rules[ruleOf[kind]].highAmountMinor[currency?.toUpperCase() ?? ""];
  return limit !== undefined && totalMinor !== null && totalMinor >= limit;
}

const hourMs = 3_600_000;

/** Stored facts of an unexpected type must not suppress the alert. */
const attempts = `case when jsonb_typeof(a.facts->'attempts') = 'number' then (a.facts->>'attempts')::numeric end`;
const nextRetryAt = `case when a.facts->>'next_retry_at' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$'
                          then (a.facts->>'next_retry_at')::timestamptz end`;

interface Row {
  id: string;
  key: string;
  occurrence: number;
  order_id: string | null;
  subscription_id: string | null;
  customer_id: string | null;
  amount_minor: string | null;
  currency: string | null;
  opened_at: Date;
  facts: { attempts: number; next_retry_at: string };
}

/**
 * Notifies the owner of renewals whose last retry is near. The interface does not name the last retry; by the setting
 * `lastAttempt` it is the one after that attempt. If the service makes more, the owner is notified again, once before
 * each. At most 200 renewals a call. Needs a transaction; idempotent.
 */
export async function reportNearLastRetries(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const { dunning_last_retry: rule } = alertContext.settings.rules;
  if (!rule.enabled) return;
  const now = alertContext.serviceClock.now();
  const until = new Date(now.getTime() + rule.withinHours * hourMs);
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select a.id, a.key, a.occurrence, a.order_id, a.subscription_id, a.customer_id, a.amount_minor, a.currency, a.opened_at,
            a.facts
     from alerts.alerts a
     where a.rule = 'dunning_renewal' and a.state <> 'resolved' and ${attempts} >= ?
       and ${nextRetryAt} between ? and ?
       and not exists (select from alerts.history h
                       where h.alert_id = a.id and h.stage = 'last-retry:' || (a.facts->>'attempts'))
     order by a.id limit 200 for update of a`,
    [rule.lastAttempt, now, until],
  );
  const announcements = rows.map((row) => announcementOf(alertContext, row, now));
  await writeHistory(
    trx,
    announcements.map(({ alertId, stage }) => ({
      alertId,
      change: "updated",
      stage: stage.name,
      at: now,
    })),
    "sweep",
  );
  await announce(trx, alertContext, announcements);
}

function announcementOf(alertContext: AlertContext, row: Row, at: Date): Announcement {
  const { attempts, next_retry_at: nextRetryAt } = row.facts;
  const amount = moneyText(row.amount_minor, row.currency);
  return {
    alertId: Number(row.id),
    occurrence: row.occurrence,
    openedAt: row.opened_at,
    timeline: {
      key: row.key,
      // Normally the daily list reports these: one message, however many there are.
      family: null,
      subject: {
        ...noSubject,
        orderId: row.order_id,
        subscriptionId: row.subscription_id,
        customerId: row.customer_id,
      },
    },
    stage: lastRetryTransition({ amount, attempts, retryAt: new Date(nextRetryAt) }, wordingOf(alertContext), at),
  };
}

/** A renewal whose last retry is near. */
export interface NearLastRetry {
  amount: string;
  attempts: number;
  retryAt: Date;
}

/** Its headline, also on the daily list. */
export const lastRetryHeadline = (amount: string, retryAt: string): Headline => ({
  lead: `${amount} renewal`,
  cause: `last retry ${retryAt}`,
  next: "Contact the customer first",
});

/**
 * Notifies the owner that one retry is left. It waits for the daily list unless it is critical or there are no digests.
 * That list comes before the retry only if `withinHours` is more than a day.
 */
export function lastRetryTransition(
  { amount, attempts, retryAt }: NearLastRetry,
  { rules, localTime, shortTime }: RuleWording,
  at: Date,
): Transition {
  const { severity } = rules.dunning_last_retry;
  return {
    name: `last-retry:${attempts}`,
    change: "updated",
    at,
    rule: "dunning_last_retry",
    severity,
    ...titled(lastRetryHeadline(amount, shortTime(retryAt))),
    advice:
      "Write to the customer, or call, before the last retry. If it fails, the renewal is lost. Ask them to make " +
      "sure that funds are available, or to pay another way.",
    facts: [
      { label: "Amount", value: amount },
      { label: "Declined attempts", value: String(attempts) },
      { label: "Last retry", value: localTime(retryAt) },
    ],
    canWait: severity !== "critical",
  };
}
