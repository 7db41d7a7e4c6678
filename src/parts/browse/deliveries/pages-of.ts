import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { type DeliveryTools, deliveryPages } from "./delivery-routes.ts";
import type { StatementFound } from "./statement.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { listSecretOverviews } from "../../../core/receiver/list-secrets.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { secretsContextOf } from "../../../app/secrets-context.ts";

const keptMs = 10 * 60_000;
const spanMs = 7 * 86_400_000;
const statementTimedOut = "57014";

/** The pages of deliveries. */
export function deliveryPagesOf(runtime: Runtime): PageGroup {
  return deliveryPages({
    secrets: async (db, quietHours) => listSecretOverviews(await secretsContextOf(runtime, db), quietHours),
    statement: keptStatement(runtime),
  });
}

/** No page waits longer for the statement than this. */
const waitsMs = 500;

/** The delivery statement, which takes long on a large database: computed once in ten minutes, beside the pages. */
function keptStatement({ ask, config, log }: Runtime): DeliveryTools["statement"] {
  const { timeZone } = config;
  const read = ask.deliveriesBetween;
  if (read === undefined) return null;
  let kept: { at: Date; found: Promise<StatementFound> } | null = null;

  const compute = async (db: Knex, now: Date): Promise<StatementFound> => {
    const from = new Date(now.getTime() - spanMs);
    try {
      return { from, until: now, ...(await read(db, { from, until: now, timeZone })) };
    } catch (err) {
      if (errorCode(err) !== statementTimedOut) {
        log.warn({ err }, "the delivery statement could not be computed");
      }
      return "too slow";
    }
  };

  return async (db, now) => {
    if (kept === null || now.getTime() - kept.at.getTime() >= keptMs) {
      kept = { at: now, found: compute(db, now) };
    }
    return Promise.race([kept.found, sleep(waitsMs, "computing" as const, { ref: false })]);
  };
}
