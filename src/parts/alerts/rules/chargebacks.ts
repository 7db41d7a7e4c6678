import { moneyText } from "../../../platform/money.ts";
import { type Chargeback, chargebackAdvice } from "../../../core/mirror/chargebacks.ts";
import type { RuleWording } from "../alert-context.ts";
import type { FactTimeline, Transition } from "../timeline.ts";
import { orderName, ordinal, titled } from "./wording.ts";

/**
 * The timeline of one opening of a chargeback: opened, then accepted (the money is lost) or dismissed (the money is
 * kept). Each opening is an alert of its own, an occurrence of the case's key.
 */
export function chargebackTimeline(
  chargeback: Chargeback,
  { rules, localTime }: Pick<RuleWording, "rules" | "localTime">,
): FactTimeline {
  const { key, opening, state, openedAt, resolvedAt, amountMinor, currency, refundedMinor } = chargeback;
  const isAgain = opening > 1;
  const amount = moneyText(amountMinor, currency);
  const order = orderName(chargeback.orderNumber);
  const of = order === null ? amount : `${amount}, ${order}`;
  const refunded = refundedMinor === 0n ? null : moneyText(refundedMinor, currency);
  const stage = (
    name: string,
    at: Date,
    told: Pick<Transition, "change" | "title" | "advice"> & Pick<Transition, "headline">,
  ): Transition => ({
    name,
    at,
    rule: "chargeback",
    severity: rules.chargeback.severity,
    canWait: false,
    evenInStorm: true,
    facts: [
      { label: "Amount", value: amount },
      { label: "Order", value: chargeback.orderNumber ?? key },
      ...(chargeback.cardLastFour === null
        ? []
        : [
            {
              label: "Card",
              value: `${chargeback.cardBrand ?? ""} •••• ${chargeback.cardLastFour}`.trim(),
            },
          ]),
      ...(refunded === null ? [] : [{ label: "Refunded before", value: refunded }]),
      {
        label: "Opened",
        value: `${localTime(openedAt)}${isAgain ? ` (${ordinal(opening)} time)` : ""}`,
      },
    ],
    ...told,
  });
  const stages: [Transition, ...Transition[]] = [
    stage("opened", openedAt, {
      change: "opened",
      ...titled({
        lead: `Chargeback ${isAgain ? "again " : ""}${of}`,
        next: refunded === null ? "Answer before the bank's deadline" : `Already refunded ${refunded}`,
      }),
      advice: isAgain
        ? `It was over and has been opened again, with a new deadline. ${chargebackAdvice(refunded)}`
        : chargebackAdvice(refunded),
    }),
  ];
  if (state !== "opened") {
    const isLost = state === "accepted";
    stages.push(
      stage(state, resolvedAt ?? openedAt, {
        change: "resolved",
        ...titled({ lead: `Chargeback ${isLost ? "LOST" : "won"} ${of}` }),
        advice: isLost
          ? "The bank keeps the money. Stop what is still delivered for this order. " +
            "Decide whether this customer may buy again."
          : "The sale stands and you keep the money. Resume what you held back for this order.",
      }),
    );
  }
  return {
    key: `chargeback:${key}`,
    occurrence: opening,
    subject: {
      orderId: chargeback.orderId,
      subscriptionId: null,
      transactionId: chargeback.transactionId,
      customerId: chargeback.customerId,
    },
    amountMinor,
    currency,
    facts: { order_number: chargeback.orderNumber, chargeback: state },
    family: "chargebacks",
    stages,
  };
}
