import type { AlertFact, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import type { AlertSettings, RuleName } from "../settings.ts";
import { declineAdvice, declineGroupOf, groupNames } from "./decline-groups.ts";
import type { DeclineGroup, DeclineKind } from "./decline-groups.ts";
import { declinedAttempts, isFirstCharge, nextRetryAfter, paidAt } from "./declined-order.ts";
import type { Attempt, DeclinedOrder, NextRetry } from "./declined-order.ts";
import type { Stage, Story } from "./story.ts";

type Rules = AlertSettings["rules"];

interface Told {
  order: DeclinedOrder;
  kind: DeclineKind;
  rules: Rules;
  localTime(at: Date): string;
}

/**
 * The story of a declined charge, of whichever of the four cases of `order.failed` (spec, Events): one-time, first
 * charge, in dunning, final. Null where nothing was declined. Pure.
 */
export function declineStory(
  order: DeclinedOrder,
  { rules, localTime }: Pick<Told, "rules" | "localTime">,
): Story | null {
  const attempts = declinedAttempts(order);
  const [first] = attempts;
  const last = attempts.at(-1);
  if (first === undefined || last === undefined) return null;
  const told: Told = { order, kind: kindOf(order), rules, localTime };
  const next = nextRetryAfter(order, last.number);
  const stages: [Stage, ...Stage[]] = [attemptStage(told, first, next, "opened")];
  for (const attempt of attempts.slice(1)) {
    stages.push(attemptStage(told, attempt, next, "updated"));
  }
  const final = told.kind === "renewal" ? finalAttempt(order, attempts, next) : null;
  if (final !== null) stages.push(finalStage(told, final));
  const end = endStage(told, last);
  if (end !== null) stages.push(end);
  return {
    key: keyOf(told),
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

function attemptStage(
  told: Told,
  attempt: Attempt,
  next: NextRetry,
  change: "opened" | "updated",
): Stage {
  const { order, kind, rules } = told;
  const group = declineGroupOf(attempt.failureCode);
  const rule = ruleOf[kind];
  const isHigh = isHighAmount(order, rules[rule].highAmountMinor);
  const isUrgent = group === "fraud" || isHigh;
  const contactsNow = isHigh || attempt.number >= rules.dunning_renewal.contactAtAttempt;
  const severity: AlertSeverity = isUrgent ? "critical" : rules[rule].severity;
  return {
    name: `attempt:${attempt.number}`,
    change,
    at: attempt.at,
    rule,
    severity,
    title: `${titles[kind](order)} declined: ${attempt.failureCode ?? "no code"} (${groupNames[group]}), attempt ${attempt.number}, ${amountOf(order)}`,
    advice: declineAdvice(group, { kind, contactsNow, isFinal: false }),
    facts: factsOf(told, attempt, group, next),
    evenInStorm: isUrgent,
    canWait: group === "soft" && attempt.number === 1 && kind !== "first" && !isUrgent,
  };
}

const titles: Readonly<Record<DeclineKind, (order: DeclinedOrder) => string>> = {
  "one-time": ({ orderNumber, id }) => `Order ${orderNumber ?? id}`,
  first: ({ subscriptionId }) => `First charge of subscription ${subscriptionId}`,
  renewal: ({ subscriptionId, cycle }) => `Renewal ${cycle} of subscription ${subscriptionId}`,
};

/** The first attempt after which it was said that no retry follows. */
function finalAttempt(
  { dunning }: DeclinedOrder,
  attempts: readonly Attempt[],
  next: NextRetry,
): Attempt | null {
  const last = attempts.at(-1) ?? null;
  const said = dunning.find(({ nextRetryAt, isRetryUnknown }) => {
    return nextRetryAt === null && !isRetryUnknown;
  });
  if (said === undefined) return next === null ? last : null;
  return attempts.find(({ number }) => number === said.attempt) ?? last;
}

function finalStage(told: Told, attempt: Attempt): Stage {
  const { order, rules, kind } = told;
  const group = declineGroupOf(attempt.failureCode);
  return {
    name: "final",
    change: "updated",
    at: attempt.at,
    rule: "dunning_final",
    severity: rules.dunning_final.severity,
    title: `${titles[kind](order)} is lost: attempt ${attempt.number} was the last, ${amountOf(order)}`,
    advice: declineAdvice(group, { kind, contactsNow: true, isFinal: true }),
    facts: factsOf(told, attempt, group, null),
    evenInStorm: true,
    canWait: false,
  };
}

function endStage(told: Told, last: Attempt): Stage | null {
  const { order, kind, rules } = told;
  const paid = paidAt(order);
  const { status, canceledAt } = order.subscription ?? { status: null, canceledAt: null };
  const isCanceled = status === "canceled" && canceledAt !== null;
  if (paid === null && !isCanceled) return null;
  const rule: RuleName = ruleOf[kind];
  const how = paid === null ? "is over: the subscription was canceled" : "was paid";
  return {
    name: paid === null ? "canceled" : "recovered",
    change: "resolved",
    at: paid ?? canceledAt ?? last.at,
    rule,
    severity: rules[rule].severity,
    title: `${titles[kind](order)} ${how}, after ${last.number} declined ${last.number === 1 ? "attempt" : "attempts"}, ${amountOf(order)}`,
    advice: "",
    facts: [
      { label: paid === null ? "Lost" : "Recovered", value: amountOf(order) },
      { label: "Declined attempts", value: String(last.number) },
      ...factsOf(told, last, declineGroupOf(last.failureCode), "unknown").filter(({ label }) =>
        ["Order", "Subscription", "Cycle"].includes(label),
      ),
    ],
    canWait: false,
  };
}

function factsOf(told: Told, attempt: Attempt, group: DeclineGroup, next: NextRetry): AlertFact[] {
  const { order, kind, localTime } = told;
  const facts: AlertFact[] = [
    { label: "Amount", value: amountOf(order) },
    { label: "Order", value: order.orderNumber ?? order.id },
  ];
  if (order.subscriptionId !== null) {
    facts.push({ label: "Subscription", value: order.subscriptionId });
    facts.push({ label: "Cycle", value: kind === "first" ? "first charge" : String(order.cycle) });
  }
  if (order.cardLastFour !== null) {
    const brand = order.cardBrand === null ? "" : `${order.cardBrand} `;
    facts.push({ label: "Card", value: `${brand}•••• ${order.cardLastFour}` });
  }
  facts.push(
    { label: "Decline code", value: attempt.failureCode ?? "none given" },
    { label: "Group", value: groupNames[group] },
    { label: "Attempt", value: String(attempt.number) },
  );
  if (kind === "renewal") facts.push({ label: "Next retry", value: retryText(next, localTime) });
  facts.push({ label: "Time", value: localTime(attempt.at) });
  return facts;
}

function retryText(next: NextRetry, localTime: Told["localTime"]): string {
  if (next === null) return "none: final";
  return next === "unknown" ? "not known" : localTime(next);
}

const amountOf = ({ totalMinor, currency }: DeclinedOrder): string =>
  moneyText(totalMinor, currency);

function isHighAmount(
  { totalMinor, currency }: DeclinedOrder,
  limits: Readonly<Record<string, number>>,
): boolean {
  const limit = limits[currency?.toUpperCase() ?? ""];
  return limit !== undefined && totalMinor !== null && totalMinor >= limit;
}
