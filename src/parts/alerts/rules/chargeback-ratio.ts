import type { Answers, NearProgramme } from "../../../app/answers.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import type { Begun } from "../condition.ts";
import { ratio } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText, shortened } from "./wording.ts";

/**
 * Chargebacks near a threshold of a card network, and over it. They are two alerts, so that the second is sent while
 * the first is open.
 */
export const chargebackRatio = watch({
  rule: "chargeback_ratio",
  about: "Chargebacks reach this share of a card network's threshold.",
  severity: "error",
  settings: { share: ratio(0.8) },
  clock: "service",
  everyMs: 3_600_000,
  read: async (
    db,
    { at, timeZone, networkRegion: region, settings },
    { programmesNear }: Pick<Answers, "programmesNear">,
  ) => (await programmesNear?.(db, { at, timeZone, region, share: settings.share })) ?? null,
  begins: (ratios) =>
    ratios.flatMap((found) => {
      const near = nearThreshold(found);
      const over: Begun = { ...near, key: `${near.key}:over`, severity: "critical", title: titleOf(found, "over") };
      return found.isOver ? [near, over] : [near];
    }),
  end: {
    title: "Chargebacks are no longer at a card network's threshold",
    advice:
      "Each month counts from zero, so perhaps only the month has changed. Keep working on the cause. " +
      `"${tallyhook("report network-monitor")}" shows the figures of this month.`,
  },
  samples: () => ({
    "chargebacks near a threshold, and over it": [
      { brand: "visa", programme: "VAMP", disputes: 104, limit: 100, ratio: 0.83, isOver: true },
    ],
  }),
});

function nearThreshold(found: NearProgramme): Begun {
  const { brand, programme, disputes, limit, ratio } = found;
  return {
    key: `chargeback-ratio:${brand}:${programme}`,
    title: titleOf(found, "near"),
    advice:
      `Over the threshold the card network fines the merchant. "${tallyhook("report chargebacks")}" lists them. ` +
      "Look for what they have in common (a product, a country, an unfamiliar name on the statement, a " +
      "cancellation that is hard to find) and stop it. Refund customers who complain before they dispute. " +
      `"${tallyhook("report network-monitor")}" shows the distance to each threshold. The true number may be ` +
      "higher: fraud reports are not counted here.",
    facts: [
      { label: "Chargebacks this month", value: String(disputes) },
      { label: "Threshold", value: String(limit) },
      ...(ratio === null ? [] : [{ label: "Share of sales", value: `${ratio} %` }]),
    ],
    storedFacts: { brand, programme, disputes, limit },
    measures: { disputes },
  };
}

const titleOf = ({ brand, programme, disputes, limit }: NearProgramme, where: "near" | "over"): string =>
  headlineText({
    lead: `${disputes} chargebacks on ${shortened(brand, 24)} this month`,
    cause: `${where} the ${shortened(programme)} threshold of ${limit}`,
  });
