import type { Knex } from "knex";
import { redacted } from "../platform/known-secrets.ts";
import { storable } from "../platform/storable-text.ts";
import type { MaskedObject } from "./card-numbers.ts";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import type { DeadEvent } from "./report-dead.ts";
import type { FutureState } from "./report-unbelieved.ts";
import { undescribedCondition, undescribedKey } from "./rules/undescribed.ts";
import type { Undescribed } from "./rules/undescribed.ts";
import { newestAlerts } from "./stored-alerts.ts";
import type { TouchedIds } from "./touched.ts";

/** What could not be told of one object or event: enough to tell exactly that again. Ids, codes and names of fields. */
export interface FailedNews {
  foundBy: FoundBy;
  masked: readonly MaskedObject[];
  future: readonly FutureState[];
  touched: TouchedIds | null;
  dead: readonly DeadEvent[];
}

export interface UndescribedNews extends Omit<Undescribed, "failed"> {
  failed: FailedNews | null;
}

/**
 * Opens an alert for each thing that could not be described; one that is open already keeps what failed before as well.
 * Needs a transaction; idempotent.
 */
export async function reportUndescribed(
  trx: Knex.Transaction,
  desk: AlertDesk,
  undescribed: readonly UndescribedNews[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.serviceClock.now();
  const { rules } = desk.settings;
  const keyOf = ({ resource, id }: UndescribedNews) => storable(undescribedKey(resource, id));
  const stored = await newestAlerts(trx, undescribed.map(keyOf));
  const conditions = undescribed.map((one) => {
    const alert = stored.get(keyOf(one));
    const before = alert === undefined || alert.state === "resolved" ? [] : failedIn(alert.facts);
    const all = new Set([...before, ...(one.failed === null ? [] : [one.failed])].map(asText));
    const failed = all.size === 0 ? null : `[${[...all].join(",")}]`;
    return undescribedCondition(rules, { ...one, failed }, at);
  });
  await raise(trx, desk, conditions, foundBy);
}

const asText = (failed: FailedNews): string => JSON.stringify(failed);

/** What is to be told again for an alert with these facts; nothing where an erasure has redacted it. Pure. */
export function failedIn(facts: Readonly<Record<string, unknown>>): FailedNews[] {
  const { failed } = facts;
  if (typeof failed !== "string" || failed === redacted) return [];
  return JSON.parse(failed) as FailedNews[];
}
