import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { mirrorTables } from "../tables.ts";
import { namedGroups } from "../table.ts";
import type { Contact } from "./owners.ts";

/** Every group whose states history keeps. */
export const groupsInHistory = mirrorTables.flatMap((table) =>
  namedGroups(table).flatMap(({ group, inHistory }) => (inHistory ? [group] : [])),
);

/**
 * Whether anybody was ever erased. Whoever writes asks this, or `erasedAmong`, first in his transaction: an erasure that
 * begins waits for its end (`markErased`).
 */
export async function isAnybodyErased(db: Knex): Promise<boolean> {
  const { rows } = await db
    .raw<{ rows: unknown[] }>("select from mirror.erasures limit 1")
    .options({ name: "mirror-any-erasure" });
  return rows.length > 0;
}

/** Those of these customers who were erased. */
export async function erasedAmong(db: Knex, customerIds: readonly string[]): Promise<Set<string>> {
  if (customerIds.length === 0) return new Set();
  const { rows } = await db
    .raw<{ rows: { customer_id: string }[] }>(
      "select customer_id from mirror.erasures where customer_id = any(?::text[])",
      [sqlArray(customerIds)],
    )
    .options({ name: "mirror-erasures" });
  return new Set(rows.map(({ customer_id }) => customer_id));
}

/** Those of these objects that belong, or once belonged, to somebody who was erased: by their history. */
export async function erasedObjectsAmong(db: Knex, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `select distinct v.id from mirror.versions v
     join mirror.erasures e on e.customer_id = v.data->>'customer_id'
     where v.resource = any(?::text[]) and v.id = any(?::text[])`,
    [sqlArray(groupsInHistory), sqlArray(ids)],
  );
  return new Set(rows.map(({ id }) => id));
}

/** The hash by which an address is known again: a list of hashes of all addresses there are is of no use without the key. */
const hashed = (text: string): string => `sha256(k.key || convert_to(${text}, 'UTF8'))`;

/** Keeps the addresses of somebody who is erased, as keyed hashes, so that later events about him are known. Idempotent. */
export async function keepContacts(
  db: Knex,
  customerId: string,
  contacts: readonly Contact[],
): Promise<void> {
  await db.raw(
    `insert into mirror.erased_contacts (hash, customer_id)
     select ${hashed("c")}, ? from unnest(?::text[]) c, mirror.erasure_key k on conflict do nothing`,
    [customerId, sqlArray(contacts)],
  );
}

/**
 * Those of these addresses that an erased person had, and that nobody else has now. One query, and another where there
 * are any: most often there are none.
 */
export async function erasedContactsAmong(
  db: Knex,
  contacts: readonly Contact[],
): Promise<Set<Contact>> {
  if (contacts.length === 0) return new Set();
  const { rows: known } = await db.raw<{ rows: { contact: Contact }[] }>(
    `select c as contact from unnest(?::text[]) c, mirror.erasure_key k
     where exists (select from mirror.erased_contacts e where e.hash = ${hashed("c")})`,
    [sqlArray(contacts)],
  );
  const found = new Set(known.map(({ contact }) => contact));
  for (const contact of await othersContacts(db, [...found])) found.delete(contact);
  return found;
}

/** Those of these addresses that somebody has who is not erased. By index, however many customers there are. */
async function othersContacts(db: Knex, contacts: readonly Contact[]): Promise<Contact[]> {
  if (contacts.length === 0) return [];
  const phone = "'+' || regexp_replace(o.phone, '\\D', '', 'g')";
  const isNotErased = "not exists (select from mirror.erasures x where x.customer_id = o.id)";
  const having = (expression: string): string =>
    `select ${expression} as contact from mirror.customers o
     where ${expression} = any(:contacts::text[]) and ${isNotErased}`;
  const { rows } = await db.raw<{ rows: { contact: Contact }[] }>(
    `${having("lower(o.email)")} union all ${having(phone)}`,
    { contacts: sqlArray(contacts) },
  );
  return rows.map(({ contact }) => contact);
}
