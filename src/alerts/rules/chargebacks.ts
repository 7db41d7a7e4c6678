import { moneyText } from "../../platform/money.ts";
import type { Stage, Story } from "./story.ts";
import { orderName, titled } from "./wording.ts";
import type { Wording } from "./wording.ts";

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
  { rules, localTime }: Pick<Wording, "rules" | "localTime">,
): Story {
  const { key, state, openedAt, resolvedAt, amountMinor, currency, refundedMinor } = chargeback;
  const amount = moneyText(amountMinor, currency);
  const order = orderName(chargeback.orderNumber);
  const of = order === null ? amount : `${amount}, ${order}`;
  const refunded = refundedMinor === 0n ? null : moneyText(refundedMinor, currency);
  const stage = (
    name: string,
    at: Date,
    told: Pick<Stage, "change" | "title" | "advice"> & Pick<Stage, "headline">,
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
      ...(refunded === null ? [] : [{ label: "Refunded before", value: refunded }]),
      { label: "Opened", value: localTime(openedAt) },
    ],
    ...told,
  });
  const stages: [Stage, ...Stage[]] = [
    stage("opened", openedAt, {
      change: "opened",
      ...titled({
        lead: `Chargeback ${of}`,
        next: refunded === null ? "Answer it in time" : `Already refunded ${refunded}`,
      }),
      advice:
        `${refunded === null ? "" : `${refunded} of it were refunded before: send the bank the proof of that refund first. `}` +
        "Look up the bank's time limit at the service today. Send what proves the sale (receipt, delivery, " +
        "login, what the customer " +
        "wrote), or accept it there. Ship nothing more, and do not refund the order as well: the money would be " +
        "gone twice.",
    }),
  ];
  if (state !== "opened") {
    const isLost = state === "accepted";
    stages.push(
      stage(state, resolvedAt ?? openedAt, {
        change: "resolved",
        ...titled({ lead: `Chargeback ${isLost ? "LOST" : "won"} ${of}` }),
        advice: isLost
          ? "The bank keeps the money. End what is still delivered for this order, and decide whether this " +
            "customer may buy again."
          : "The sale stands and the money stays yours. What was held for this order may go on.",
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
