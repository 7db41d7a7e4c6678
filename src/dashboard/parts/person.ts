import type { Knex } from "knex";
import { type Actor, recordAct } from "../../people/audit.ts";
import { type Html, html } from "../../platform/html.ts";
import { oneLine } from "../../platform/one-line.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";

const longestName = 120;

/** A name that somebody else chose, so that it neither reaches over the line nor turns the text around it. Pure. */
export const outsideName = (name: string): Html => html`<bdi>${oneLine(name, longestName)}</bdi>`;

/** Records that somebody was shown who customers are: on a page, or of a thing. */
export const recordPersonRead = (
  db: Knex,
  actor: Actor,
  subject: { kind: string; id: string },
): Promise<void> =>
  inTransaction(db, (trx) => recordAct(trx, actor, { action: "person.read", subject }));
