import type { Knex } from "knex";
import { type Actor, recordAct } from "../../people/audit.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";

/** Records that somebody was shown who customers are: on a page, or of a thing. */
export const recordPersonRead = (db: Knex, actor: Actor, subject: { kind: string; id: string }): Promise<void> =>
  inTransaction(db, (trx) => recordAct(trx, actor, { action: "person.read", subject }));
