import type { Knex } from "knex";
import { clear, raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { undescribedCondition } from "./rules/undescribed.ts";
import type { Undescribed } from "./rules/undescribed.ts";

/** Opens an alert for each thing that could not be described. Needs a transaction; idempotent. */
export async function reportUndescribed(
  trx: Knex.Transaction,
  desk: AlertDesk,
  undescribed: readonly Undescribed[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.serviceClock.now();
  const { rules } = desk.settings;
  await raise(
    trx,
    desk,
    undescribed.map((one) => undescribedCondition(rules, one, at)),
    foundBy,
  );
}

/** Ends these, once what they are about was described. Needs a transaction; costs nothing where there are none. */
export async function clearUndescribed(
  trx: Knex.Transaction,
  desk: AlertDesk,
  keys: readonly string[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.serviceClock.now();
  const title = "What could not be described has been described";
  await clear(
    trx,
    desk,
    keys.map((key) => ({ key, title, at })),
    foundBy,
  );
}
