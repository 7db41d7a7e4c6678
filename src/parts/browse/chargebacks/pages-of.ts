import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { chargebackPages } from "./chargeback-routes.ts";
import type { Ratios } from "./list-view.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import type { Runtime } from "../../../app/runtime.ts";

/** How long an answer stands: it sums the sales of two months. */
const freshMs = 10 * 60_000;
/** No page waits longer for it: it continues in the background. */
const waitsMs = 50;
const statementTimedOut = "57014";

/** The pages about disputed sales; without reports, without the networks' thresholds. */
export function chargebackPagesOf({ ask, config, log }: Pick<Runtime, "ask" | "config" | "log">): PageGroup {
  const programmesNear = ask.programmesNear;
  if (programmesNear === undefined) return chargebackPages({});
  const region = config.networkRegion;
  const compute = (db: Knex, at: Date, timeZone: string): Promise<Ratios> =>
    programmesNear(db, { at, timeZone, region, share: 0 }).catch((err: unknown) => {
      if (errorCode(err) !== statementTimedOut) {
        log.warn({ err }, "the networks' thresholds could not be compared");
      }
      return "unknown";
    });
  let kept: { at: Date; answer: Promise<Ratios> } | null = null;
  return chargebackPages({
    async ratios(db, at, timeZone) {
      const age = kept === null ? Infinity : Math.abs(at.getTime() - kept.at.getTime());
      if (kept === null || age >= freshMs) kept = { at, answer: compute(db, at, timeZone) };
      return Promise.race([kept.answer, sleep(waitsMs, "computing" as const, { ref: false })]);
    },
  });
}
