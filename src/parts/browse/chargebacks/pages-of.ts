import type { NearProgramme } from "../../../app/answers.ts";
import { createBeside } from "../../../app/dashboard/elements/beside-page.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { chargebackPages } from "./chargeback-routes.ts";
import type { Runtime } from "../../../app/runtime.ts";

/** The pages about disputed sales; without reports, without the networks' thresholds. */
export function chargebackPagesOf({ ask, config, log }: Pick<Runtime, "ask" | "config" | "log">): PageGroup {
  const programmesNear = ask.programmesNear;
  if (programmesNear === undefined) return chargebackPages({});
  const region = config.networkRegion;
  const failed = "the networks' thresholds could not be compared";
  // It sums the sales of two months.
  const beside = createBeside<NearProgramme[]>({ log, waitsMs: 50, failed });
  return chargebackPages({
    ratios: (db, at, timeZone) => beside(at, () => programmesNear(db, { at, timeZone, region, share: 0 })),
  });
}
