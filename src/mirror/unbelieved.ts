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

/**
 * Those of the states that an event brings again although a person had the object written otherwise: they stay
 * overruled. What a read shows is what the service shows now, and is believed. One statement.
 */
export async function findOverruled(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<ReadonlySet<GroupState>> {
  const told = states.filter(({ observedAt }) => observedAt === null);
  if (told.length === 0) return new Set();
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       join mirror.unbelieved u using (resource, id, source_updated_at, content_hash) where u.heal is not null`,
      [
        arrayLiteral(told.map(({ group }) => group)),
        arrayLiteral(told.map(({ id }) => id)),
        arrayLiteral(told.map(({ updatedAt }) => updatedAt)),
        arrayLiteral(told.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-overruled" });
  return new Set(rows.flatMap(({ n }) => told[Number(n) - 1] ?? []));
}
