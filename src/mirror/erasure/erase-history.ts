import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { contactsIn } from "./owners.ts";
import type { Contact } from "./owners.ts";
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
     union select id from mirror.orders where customer_id = :customerId
     union select id from mirror.transactions where customer_id = :customerId
     union select id from mirror.subscriptions where customer_id = :customerId
     union select :customerId`,
    { customerId },
  );
  return rows.map(({ id }) => id);
}

/** Keys under which an address of the person stands; elsewhere an address may be anybody's. */
const contactKeys = ["email", "phone"];

/** The e-mail addresses and phone numbers that the person's states ever showed as theirs, also in addresses. */
export async function contactsOf(db: Knex, customerId: string): Promise<Contact[]> {
  const shown = `data->>'customer_id' = :customerId or (resource = 'customer' and id = :customerId)`;
  const { rows } = await db.raw<{ rows: { value: string }[] }>(
    `select distinct field.value from mirror.versions v
     cross join lateral (
       values (v.data), (v.data->'shipping_address')
     ) part(object)
     cross join lateral jsonb_each_text(
       case jsonb_typeof(part.object) when 'object' then part.object else '{}' end) field
     where (${shown}) and field.key = any(:contactKeys::text[])`,
    { customerId, contactKeys: sqlArray(contactKeys) },
  );
  return [...new Set(rows.flatMap(({ value }) => [...contactsIn(value)]))];
}

/**
 * Redacts the states of these objects, but those that show another customer: an order may have moved. Two states that
 * differed in personal data only become one. History changes here, and where a person has an object healed (overwrite.ts); it says so to the table's trigger, in
 * its transaction, which it needs. Idempotent. Gives back how many states there were, and what became of their hashes.
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
     where v.id = any(?::text[]) and coalesce(v.data->>'customer_id', ?) = ?`,
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
    const key = { resource, id, source_updated_at };
    const same = await trx("mirror.versions")
      .where({ ...key, content_hash: hash })
      .first("seq");
    const row = trx("mirror.versions").where({ ...key, content_hash, seq });
    await (same === undefined ? row.update({ data: json, content_hash: hash }) : row.delete());
  }
  await trx.raw("select set_config('tallyhook.erasure', 'off', true)");
  return { states: rows.length, hashes };
}
