import type { Knex } from "knex";
import { raise } from "./conditions.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { cardNumberCondition } from "./rules/card-numbers.ts";

/** An object in which card numbers were masked, and the fields in which they stood. */
export interface MaskedObject {
  resource: string;
  id: string;
  paths: readonly string[];
}

/**
 * Tells in which fields card numbers stood. Belongs into the transaction that stores what was masked, before anything
 * else that locks alerts; costs nothing where there are none. Idempotent.
 */
export async function reportCardNumbers(
  trx: Knex.Transaction,
  desk: AlertDesk,
  masked: readonly MaskedObject[],
  foundBy: FoundBy,
): Promise<void> {
  const at = desk.clock.now();
  const conditions = masked.flatMap(({ resource, id, paths }) =>
    paths.map((path) => cardNumberCondition(desk.settings.rules, { resource, id, path }, at)),
  );
  await raise(trx, desk, conditions, foundBy);
}
