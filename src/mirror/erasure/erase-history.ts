import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { addTraces } from "./owners.ts";
import type { PersonTraces } from "./owners.ts";
import { groupsInHistory } from "./erased-people.ts";
import { redactedContent } from "./redact-states.ts";

interface VersionRow {
  seq: string;
  resource: string;
  id: string;
  source_updated_at: string;
  content_hash: string;
  data: Record<string, unknown>;
}

/** New hashes of redacted contents, by group, object and old hash. */
export type NewHashes = ReadonlyMap<string, string>;

export const hashKey = (group: string, id: string, hash: string): string =>
  `${group}|${id}|${hash}`;

/** Everything that ever belonged to the customer, and the customer. Reads the whole history. */
export async function objectsOf(db: Knex, customerId: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `select id from mirror.versions where data->>'customer_id' = :customerId
     union select id from mirror.unbelieved where data->>'customer_id' = :customerId
     union select id from mirror.orders where customer_id = :customerId
     union select id from mirror.transactions where customer_id = :customerId
     union select id from mirror.subscriptions where customer_id = :customerId
     union select :customerId`,
    { customerId },
  );
  return rows.map(({ id }) => id);
}

/** What the person's states, believed or not, ever showed as theirs. Reads the whole history. */
export async function tracesOf(db: Knex, customerId: string): Promise<PersonTraces> {
  const states = (table: string): string =>
    `select data from mirror.${table}
     where data->>'customer_id' = :customerId or (resource = 'customer' and id = :customerId)`;
  const { rows } = await db.raw<{ rows: { data: unknown }[] }>(
    `${states("versions")} union all ${states("unbelieved")}`,
    { customerId },
  );
  const traces: PersonTraces = { contacts: new Set(), names: new Set() };
  for (const { data } of rows) addTraces(data, customerId, traces, { isTheirs: true });
  return traces;
}

/**
 * Redacts the states of these objects, but those that show another customer: an order may have moved. Two states that
 * differed in personal data only both stay, the one recorded later as a twin: reports as of a time go on to know when
 * each was recorded, and what a read saw. History changes here, and where a person has an object healed (overwrite.ts);
 * it says so to the table's trigger, in its transaction, which it needs. Idempotent. Gives back how many states there
 * were, and what became of their hashes.
 */
export async function eraseHistory(
  trx: Knex.Transaction,
  customerId: string,
  ids: readonly string[],
): Promise<{ states: number; hashes: NewHashes }> {
  await trx.raw("select set_config('tallyhook.erasure', 'on', true)");
  const { rows } = await trx.raw<{ rows: VersionRow[] }>(
    `select v.seq, v.resource, v.id, v.source_updated_at::text as source_updated_at, v.content_hash, v.data
     from mirror.versions v join unnest(?::text[]) as of_group(resource) on v.resource = of_group.resource
     where v.id = any(?::text[]) and coalesce(v.data->>'customer_id', ?) = ?
     order by v.recorded_at, v.seq`,
    [sqlArray(groupsInHistory), sqlArray(ids), customerId, customerId],
  );
  // Nothing rests on what was not believed.
  await trx("mirror.unbelieved")
    .whereIn("id", [...ids])
    .orWhereRaw("data->>'customer_id' = ?", [customerId])
    .delete();
  const hashes = new Map<string, string>();
  for (const { seq, resource, id, source_updated_at, content_hash, data } of rows) {
    const { json, hash } = redactedContent(JSON.stringify(data));
    if (hash === content_hash) continue;
    hashes.set(hashKey(resource, id, content_hash), hash);
    await trx.raw(
      `update mirror.versions set data = :json::jsonb, content_hash = :hash, twin = (
         select count(*) from mirror.versions same
         where same.resource = :resource and same.id = :id and same.content_hash = :hash
           and same.source_updated_at = :source_updated_at::timestamptz)
       where resource = :resource and id = :id and source_updated_at = :source_updated_at::timestamptz
         and content_hash = :content_hash and seq = :seq`,
      { json, hash, resource, id, source_updated_at, content_hash, seq },
    );
  }
  await trx.raw("select set_config('tallyhook.erasure', 'off', true)");
  return { states: rows.length, hashes };
}
