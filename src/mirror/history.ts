import type { Knex } from "knex";
import { arrayLiteral } from "./array-literal.ts";
import type { GroupState } from "./observation.ts";

/**
 * Those of the states that share `updated_at` with a recorded state of other content: which of them is the last
 * cannot be told from events. One statement, after the rows of the objects were written: whoever works on the
 * same object meanwhile has waited, or was waited for.
 */
export async function findTies(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<GroupState[]> {
  if (states.length === 0) return [];
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       where exists (
         select from mirror.versions v
         where v.resource = given.resource and v.id = given.id
           and v.source_updated_at = given.source_updated_at and v.content_hash <> given.content_hash)`,
      [
        arrayLiteral(states.map(({ group }) => group)),
        arrayLiteral(states.map(({ id }) => id)),
        arrayLiteral(states.map(({ updatedAt }) => updatedAt)),
        arrayLiteral(states.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-ties" });
  return rows.flatMap(({ n }) => states[Number(n) - 1] ?? []);
}

/** Those of the states that the history has. One statement. */
export async function findRecorded(
  db: Knex,
  states: readonly GroupState[],
): Promise<Set<GroupState>> {
  if (states.length === 0) return new Set();
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
       with ordinality as given(resource, id, source_updated_at, content_hash, n)
     join mirror.versions v using (resource, id, source_updated_at, content_hash)`,
    [
      arrayLiteral(states.map(({ group }) => group)),
      arrayLiteral(states.map(({ id }) => id)),
      arrayLiteral(states.map(({ updatedAt }) => updatedAt)),
      arrayLiteral(states.map(({ hash }) => hash)),
    ],
  );
  return new Set(rows.flatMap(({ n }) => states[Number(n) - 1] ?? []));
}
