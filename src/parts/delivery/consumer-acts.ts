import type { Knex } from "knex";
import { type Act, ActRefused, recordOf } from "../../app/people/act.ts";
import { reference } from "../../app/people/fields.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { readConsumer, removeConsumer } from "./consumers.ts";

interface Deps {
  db: Knex;
  /** The command that removes a handler or a destination together with this place of it; null for another consumer. */
  removedBy(consumer: string): string | null;
}

/** After this the feed keeps no changes for it. */
export const removingConsumer: Act<Deps, { consumer: string }, null> = {
  name: "consumer.removed",
  permission: "handler:write",
  fields: { consumer: reference },
  run: (deps, call) =>
    inTransaction(deps.db, async (trx) => {
      const { consumer } = call.input;
      await assertRemovable({ ...deps, db: trx }, consumer);
      const position = await removeConsumer(trx, consumer);
      if (position !== null) {
        const subject = { kind: "consumer", id: consumer };
        await recordOf(removingConsumer, call)(trx, { subject, before: { position } });
      }
      return null;
    }),
};

/** Throws `ActRefused` for one that is unknown, or belongs to a handler or a destination. */
export async function assertRemovable({ db, removedBy }: Deps, consumer: string): Promise<void> {
  if (removedBy(consumer) !== null) {
    const message = `"${consumer}" is the place of a handler or a destination, and is removed with it.`;
    throw new ActRefused("hindered", message);
  }
  if ((await readConsumer(db, consumer)) === null) {
    throw new ActRefused("unknown", `There is no consumer "${consumer}".`);
  }
}
