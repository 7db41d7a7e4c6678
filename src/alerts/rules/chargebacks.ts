import { moneyText } from "../../platform/money.ts";
import type { AlertSettings } from "../settings.ts";
import type { Stage, Story } from "./story.ts";

/** A chargeback as `mirror.chargebacks` derives it from all known states. */
export interface Chargeback {
  /** The order's id, or the transaction's where there is no order. */
  key: string;
  orderId: string | null;
  transactionId: string | null;
  customerId: string | null;
  orderNumber: string | null;
  state: "opened" | "accepted" | "dismissed";
  amountMinor: bigint | null;
  currency: string | null;
  openedAt: Date;
  resolvedAt: Date | null;
  refundedMinor: bigint;
  cardBrand: string | null;
  cardLastFour: string | null;
}

/** The story of a chargeback: opened, then accepted (the money is lost) or dismissed (it stays ours). Pure. */
export function chargebackStory(
  chargeback: Chargeback,
  { rules, localTime }: { rules: AlertSettings["rules"]; localTime(at: Date): string },
): Story {
  const { key, state, openedAt, resolvedAt, amountMinor, currency } = chargeback;
  const amount = moneyText(amountMinor, currency);
  const of = `Chargeback of order ${chargeback.orderNumber ?? key}`;
  const stage = (
    name: string,
    at: Date,
    told: Pick<Stage, "change" | "title" | "advice">,
  ): Stage => ({
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
      ...(chargeback.refundedMinor === 0n
        ? []
        : [{ label: "Refunded before", value: moneyText(chargeback.refundedMinor, currency) }]),
      { label: "Opened", value: localTime(openedAt) },
    ],
    ...told,
  });
  const stages: [Stage, ...Stage[]] = [
    stage("opened", openedAt, {
      change: "opened",
      title: `${of} opened, ${amount}`,
      advice:
        "Collect the evidence and answer it before the bank's time limit, or accept it. Hold fulfilment; do not refund " +
        "the order as well.",
    }),
  ];
  if (state !== "opened") {
    const isLost = state === "accepted";
    stages.push(
      stage(state, resolvedAt ?? openedAt, {
        change: "resolved",
        title: `${of} ${isLost ? "accepted: the money is lost" : "dismissed: the sale stands"}, ${amount}`,
        advice: "",
      }),
    );
  }
  return {
    key: `chargeback:${key}`,
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
