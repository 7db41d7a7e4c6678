import type { Knex } from "knex";
import { moneyText } from "../../../platform/money.ts";
import { type Chargeback, chargebackAdvice } from "../../../core/mirror/chargebacks.ts";
import { type AlertContext, zoneOf } from "../alert-context.ts";
import { clearOthers, raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import { writeWatermark } from "../store.ts";
import type { Condition, End, FactTimeline, Transition } from "../timeline.ts";
import { type Wording, headlineText, orderName, ordinal, shortened, titled } from "./wording.ts";

/**
 * The timeline of one opening of a chargeback: opened, then accepted (the money is lost) or dismissed (the money is
 * kept). Each opening is an alert of its own, an occurrence of the case's key.
 */
export function chargebackTimeline(
  chargeback: Chargeback,
  { rules, localTime }: Pick<Wording, "rules" | "localTime">,
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

/** What is asked of the reports. */
export interface RatioQuestions {
  /**
   * The programmes of the card networks that the chargebacks of the month of `at` are near: `share` of the threshold is
   * reached. Absent without reports: nobody is told then.
   */
  programmesNear?(
    db: Knex,
    question: { at: Date; timeZone: string; region: string; share: number },
  ): Promise<ChargebackRatio[]>;
}

/** Checks hourly how close this month's chargebacks are to the thresholds of the card networks. Needs a transaction. */
export async function watchChargebackRatio(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { programmesNear }: RatioQuestions,
): Promise<void> {
  if (programmesNear === undefined) return;
  const fresh = await trx("alerts.marks")
    .where("name", "chargeback-ratio")
    .whereRaw("updated_at > now() - interval '1 hour'")
    .first("name");
  if (fresh !== undefined) return;
  await writeWatermark(trx, "chargeback-ratio", {});
  const { rules } = alertContext.settings;
  const at = alertContext.serviceClock.now();
  const found = await programmesNear(trx, {
    at,
    timeZone: zoneOf(alertContext),
    region: alertContext.networkRegion,
    share: rules.chargeback_ratio.share,
  });
  const conditions = found.flatMap((ratio) => ratioConditions(rules, ratio, at));
  await raise(trx, alertContext, conditions, "sweep");
  const keep = conditions.map(({ key }) => key);
  await clearOthers(trx, alertContext, { prefix: "chargeback-ratio:", keep, at, end: ratioEnd }, "sweep");
}

export interface ChargebackRatio {
  brand: string;
  programme: string;
  disputes: number;
  /** The number of disputes at which the programme applies. */
  limit: number;
  /** Percent of settled sales; null where there are none. */
  ratio: number | null;
  /** Every threshold of the programme is reached; in some regions an amount is one of them. */
  isOver: boolean;
}

/**
 * Chargebacks near a threshold of a card network, and over it. They are two alerts, so that the second is sent while
 * the first is open.
 */
export function ratioConditions(rules: AlertSettings["rules"], ratio: ChargebackRatio, at: Date): Condition[] {
  const near = nearCondition(rules, ratio, at);
  if (!ratio.isOver) return [near];
  const title = titleOf(ratio, "over");
  return [near, { ...near, key: `${near.key}:over`, severity: "critical", title }];
}

function nearCondition(rules: AlertSettings["rules"], found: ChargebackRatio, at: Date): Condition {
  const { brand, programme, disputes, limit, ratio } = found;
  return {
    key: `chargeback-ratio:${brand}:${programme}`,
    rule: "chargeback_ratio",
    severity: rules.chargeback_ratio.severity,
    title: titleOf(found, "near"),
    advice:
      'Over the threshold the card network fines the merchant. "node src/bin/tallyhook.js report chargebacks" lists ' +
      "them. Look " +
      "for what they have in common (a product, a country, an unfamiliar name on the statement, a cancellation that " +
      "is hard to find) and stop it. Refund customers who complain before they dispute. " +
      '"node src/bin/tallyhook.js report network-monitor" shows the distance to each threshold. The true number may ' +
      "be higher: " +
      "fraud reports are not counted here.",
    facts: [
      { label: "Chargebacks this month", value: String(disputes) },
      { label: "Threshold", value: String(limit) },
      ...(ratio === null ? [] : [{ label: "Share of sales", value: `${ratio} %` }]),
    ],
    storedFacts: { brand, programme, disputes, limit },
    measures: { disputes },
    at,
  };
}

const titleOf = ({ brand, programme, disputes, limit }: ChargebackRatio, where: "near" | "over"): string =>
  headlineText({
    lead: `${disputes} chargebacks on ${shortened(brand, 24)} this month`,
    cause: `${where} the ${shortened(programme)} threshold of ${limit}`,
  });

export const ratioEnd: End = {
  title: "Chargebacks are no longer at a card network's threshold",
  advice:
    "Each month counts from zero, so perhaps only the month has changed. Keep working on the cause. " +
    '"node src/bin/tallyhook.js report network-monitor" shows the figures of this month.',
};
