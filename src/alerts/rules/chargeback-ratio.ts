import type { Condition } from "../conditions.ts";
import type { AlertSettings } from "../settings.ts";

export interface ChargebackRatio {
  brand: string;
  programme: string;
  disputes: number;
  /** At how many disputes the programme begins. */
  limit: number;
  /** Percent of settled sales; null where there are none. */
  ratio: number | null;
}

/** Chargebacks near what a card network tolerates. Pure. */
export function ratioCondition(
  rules: AlertSettings["rules"],
  { brand, programme, disputes, limit, ratio }: ChargebackRatio,
  at: Date,
): Condition {
  return {
    key: `chargeback-ratio:${brand}:${programme}`,
    rule: "chargeback_ratio",
    severity: disputes >= limit ? "critical" : rules.chargeback_ratio.severity,
    title: `Chargebacks on ${brand} are ${disputes >= limit ? "over" : "near"} the threshold of ${programme}: ${disputes} of ${limit}`,
    advice:
      "Over the threshold the network fines and watches the merchant. See npx tallyhook report network-monitor and chargebacks: stop " +
      "what causes them (fraud, unclear descriptors, hard cancellations); refund before a dispute is opened. The number is a lower " +
      "bound: fraud reports are not in the service.",
    facts: [
      { label: "Disputes this month", value: String(disputes) },
      { label: "Threshold", value: String(limit) },
      ...(ratio === null ? [] : [{ label: "Share of sales", value: `${ratio} %` }]),
    ],
    kept: { brand, programme, disputes, limit },
    at,
  };
}
