import type { Permission } from "../../people/permissions.ts";
import type { Knex } from "knex";
import { type Actor, recordAct } from "../../people/audit.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";

/** Whether a visitor may read people's texts, notes and reasons alike: they may name customers. */
export const mayReadTexts = (permissions: ReadonlySet<Permission>): boolean => permissions.has("person:read");

/** Replaces such a text. */
export const hiddenText = "Notes may name people: reading them requires the permission person:read.";

/** Records that customers' names were shown to a person: on a page, or for a thing. */
export const recordPersonRead = (db: Knex, actor: Actor, subject: { kind: string; id: string }): Promise<void> =>
  inTransaction(db, (trx) => recordAct(trx, actor, { action: "person.read", subject }));
