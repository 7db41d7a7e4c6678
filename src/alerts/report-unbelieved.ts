import type { Knex } from "knex";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { futureStateCondition } from "./rules/events.ts";

/** A state of a group of fields, and the object whose read shows it. */
export interface FutureState {
  group: string;
  id: string;
  /** Fixed form. */
  changedAt: string;
  settledBy: { resource: string; id: string } | null;
}

/**
 * Tells of states that are dated later than they can be. Belongs into the transaction that keeps them; costs nothing
 * where there are none. Idempotent.
 */
export async function reportUnbelieved(
  trx: Knex.Transaction,
  desk: AlertDesk,
  unbelieved: readonly FutureState[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.clock.now();
  const conditions = unbelieved.map(({ group, id, settledBy, changedAt }) => {
    const object = settledBy ?? { resource: group.split(".", 1)[0] ?? group, id };
    return futureStateCondition(desk.settings.rules, { ...object, changedAt }, at);
  });
  await raise(trx, desk, conditions, foundBy);
}
