import type { PageGroup } from "../../dashboard/page-group.ts";
import { chargebackPages } from "../../dashboard/pages/chargebacks/chargeback-routes.ts";
import type { Ratio } from "../../dashboard/pages/chargebacks/list-view.ts";
import { errorCode } from "../../platform/postgres/errors.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { Runtime } from "../runtime.ts";

/** How long an answer stands: it sums the sales of two months. */
const freshMs = 10 * 60_000;
const statementTimedOut = "57014";

/** The pages about disputed sales; without reports, without the networks' thresholds. */
export function chargebackPagesOf({ config }: Pick<Runtime, "config">): PageGroup {
  const programmesNear = optionalRooms.reports?.questions.programmesNear;
  if (programmesNear === undefined) return chargebackPages({});
  let known: { at: Date; answer: readonly Ratio[] | "unknown" } | null = null;
  return chargebackPages({
    async ratios(db, at, timeZone) {
      const age = known === null ? Infinity : Math.abs(at.getTime() - known.at.getTime());
      if (known !== null && age < freshMs) return known.answer;
      const region = config.networkRegion;
      const answer = await programmesNear(db, { at, timeZone, region, share: 0 }).catch(
        (err: unknown) => {
          if (errorCode(err) === statementTimedOut) return "unknown" as const;
          throw err;
        },
      );
      known = { at, answer };
      return answer;
    },
  });
}
