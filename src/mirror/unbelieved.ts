import type { Knex } from "knex";
import { arrayLiteral } from "./array-literal.ts";
import { redactErased } from "./erasure/redact-states.ts";
import type { GroupState } from "./observation.ts";

/**
 * Keeps those of the states that are dated later than they can be, apart from the history: nothing that reads it, and
 * no version, has to know of them. One statement; idempotent. Needs a transaction.
 */
export async function keepUnbelieved(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<void> {
  const kept = states.filter(({ isBelieved }) => !isBelieved);
  if (kept.length === 0) return;
  await redactErased(trx, kept);
  await trx.raw(
    `insert into mirror.unbelieved (resource, id, source_updated_at, content_hash, observed_at, cause, data)
     select * from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::timestamptz[], ?::text[], ?::jsonb[])
     on conflict do nothing`,
    [
      arrayLiteral(kept.map(({ group }) => group)),
      arrayLiteral(kept.map(({ id }) => id)),
      arrayLiteral(kept.map(({ updatedAt }) => updatedAt)),
      arrayLiteral(kept.map(({ hash }) => hash)),
      arrayLiteral(kept.map(({ observedAt }) => observedAt)),
      arrayLiteral(kept.map(({ cause }) => cause)),
      arrayLiteral(kept.map(({ json }) => json)),
    ],
  );
}
