import type { Knex } from "knex";
import { redactTexts } from "../../platform/postgres/redact-texts.ts";

/** Takes out the notes of signing secrets that name a person. Needs the erasure's transaction; idempotent. */
export const eraseSecretNotes = (trx: Knex.Transaction, named: (text: string) => boolean): Promise<number> =>
  redactTexts(trx, { table: "receiver.secrets", key: "id", column: "note" }, ({ text }) => named(text));
