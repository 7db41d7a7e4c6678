import type { Condition, End } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";
import { headlineText, short } from "./wording.ts";

export interface ChargebackRatio {
  brand: string;
  programme: string;
  disputes: number;
  /** At how many disputes the programme begins. */
  limit: number;
  /** Percent of settled sales; null where there are none. */
  ratio: number | null;
}

/**
 * Chargebacks near what a card network tolerates, and over it: two alerts, so that the second is told though the first
 * is open. Pure.
 */
export function ratioConditions(
  rules: AlertSettings["rules"],
  ratio: ChargebackRatio,
  at: Date,
): Condition[] {
  const near = nearCondition(rules, ratio, at);
  if (ratio.disputes < ratio.limit) return [near];
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
      'Over the threshold the card network fines the merchant. "npx tallyhook report chargebacks" lists them: ' +
      "look for what they have in " +
      "common (one product, one country, a name on the statement that nobody knows, a cancellation that is hard " +
      "to find) and stop that. " +
      'Refund who complains before it becomes a dispute. "npx tallyhook report network-monitor" shows what is ' +
      "left; the true number may be " +
      "higher, as reports of fraud are not known here.",
    facts: [
      { label: "Disputes this month", value: String(disputes) },
      { label: "Threshold", value: String(limit) },
      ...(ratio === null ? [] : [{ label: "Share of sales", value: `${ratio} %` }]),
    ],
    kept: { brand, programme, disputes, limit },
    measures: { disputes },
    at,
  };
}

const titleOf = (
  { brand, programme, disputes, limit }: ChargebackRatio,
  where: "near" | "over",
): string =>
  headlineText({
    lead: `${disputes} of ${limit} chargebacks on ${short(brand, 24)} this month`,
    cause: `${where} the threshold of ${short(programme)}`,
  });

export const ratioEnd: End = {
  title: "Chargebacks no longer at a card network's threshold",
  advice:
    "Each month counts from zero, so this may be the calendar alone: go on with what was begun. " +
    '"npx tallyhook report network-monitor" shows how this month stands.',
};
