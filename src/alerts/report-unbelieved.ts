import type { Knex } from "knex";
import type { GroupState } from "../mirror/observation.ts";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { futureStateCondition } from "./rules/events.ts";

/**
 * Tells of states that are dated later than they can be. Belongs into the transaction that keeps them; costs nothing
 * where there are none. Idempotent.
 */
export async function reportUnbelieved(
  trx: Knex.Transaction,
  desk: AlertDesk,
  unbelieved: readonly GroupState[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.clock.now();
  const conditions = unbelieved.map(({ group, id, settledBy, changedAt }) => {
    const object = settledBy ?? { resource: group.split(".", 1)[0] ?? group, id };
    return futureStateCondition(desk.settings.rules, { ...object, changedAt }, at);
  });
  await raise(trx, desk, conditions, foundBy);
}
