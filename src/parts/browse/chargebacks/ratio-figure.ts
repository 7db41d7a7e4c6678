import type { NearProgramme } from "../../../app/answers.ts";
import type { Figure } from "../../../app/figures/figure.ts";

/** From this share of a threshold on, a programme is near. */
const nearShare = 0.8;

/** Where this month's chargebacks stand against a programme's threshold. */
export const standingOf = ({ isOver, disputes, limit }: NearProgramme): "over" | "near" | "below" =>
  isOver ? "over" : disputes >= nearShare * limit ? "near" : "below";

/** This month's chargebacks in percent of each programme's threshold; none where no network counts any. */
export function ratioFigures(programmes: readonly NearProgramme[]): Figure[] {
  if (programmes.length === 0) return [];
  const counted = ({ brand, programme, disputes, limit }: NearProgramme) =>
    `${brand} ${programme} ${disputes} of ${limit}`;
  return [
    {
      kind: "bars",
      title: "This month's chargebacks against each network's threshold",
      describes: `Chargebacks of the number at which a programme applies: ${programmes.map(counted).join(", ")}.`,
      bars: programmes.map((each) => ({
        label: `${each.brand} ${each.programme}`,
        from: 0,
        to: each.limit === 0 ? 0 : (100 * each.disputes) / each.limit,
        value: `${each.disputes} of ${each.limit}${each.ratio === null ? "" : ` · ${each.ratio} %`}`,
        tone: standingOf(each) === "below" ? "base" : "loss",
      })),
      threshold: { value: 100, label: "threshold" },
    },
  ];
}
