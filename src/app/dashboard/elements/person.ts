import type { Knex } from "knex";
import { type Actor, recordAct } from "../../people/audit.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";

/** Records that customers' names were shown to a person: on a page, or for a thing. */
export const recordPersonRead = (db: Knex, actor: Actor, subject: { kind: string; id: string }): Promise<void> =>
  inTransaction(db, (trx) => recordAct(trx, actor, { action: "person.read", subject }));
