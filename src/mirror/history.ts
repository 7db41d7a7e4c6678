import type { Knex } from "knex";
import type { GroupState } from "./observation.ts";

/**
 * Keeps every distinct state, also of those that lost. Gives back the states that were new to history. One
 * statement; belongs into the transaction that changes the mirror.
 */
export async function recordStates(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<Set<string>> {
  const distinct = new Map(states.map((state) => [stateKey(state), state]));
  const rows = [...distinct.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, state]) => ({
      key,
      resource: state.group,
      id: state.id,
      source_updated_at: state.updatedAt,
      content_hash: state.hash,
      observed_at: state.observedAt,
      cause: state.cause,
      data: state.content,
    }));
  const { rows: recorded } = await trx.raw<{ rows: { key: string }[] }>(
    `with given as (
       select * from json_to_recordset(?::json) as r(key text, resource text, id text,
         source_updated_at timestamptz, content_hash text, observed_at timestamptz, cause text, data jsonb)
     ), recorded as (
       insert into mirror.versions (resource, id, source_updated_at, content_hash, observed_at, cause, data)
       select resource, id, source_updated_at, content_hash, observed_at, cause, data from given
       on conflict (resource, id, source_updated_at, content_hash) do nothing
       returning resource, id, source_updated_at, content_hash
     )
     select given.key from recorded join given using (resource, id, source_updated_at, content_hash)`,
    [JSON.stringify(rows)],
  );
  return new Set(recorded.map(({ key }) => key));
}

/** What makes a state distinct. */
export const stateKey = ({ group, id, updatedAt, hash }: GroupState): string =>
  `${group}|${id}|${updatedAt}|${hash}`;

/**
 * Those of the states that share `updated_at` with a state of other content: which one is the last cannot be
 * told from events, so the object must be read. One statement.
 */
export async function findTies(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<GroupState[]> {
  if (states.length === 0) return [];
  const { rows } = await trx.raw<{ rows: { n: number }[] }>(
    `select distinct given.n
     from json_to_recordset(?::json) as given(n int, resource text, id text, source_updated_at timestamptz,
                                              content_hash text)
     join mirror.versions v using (resource, id, source_updated_at)
     where v.content_hash <> given.content_hash`,
    [
      JSON.stringify(
        states.map(({ group, id, updatedAt, hash }, n) => ({
          n,
          resource: group,
          id,
          source_updated_at: updatedAt,
          content_hash: hash,
        })),
      ),
    ],
  );
  return rows.flatMap(({ n }) => states[n] ?? []);
}
