import type { Knex } from "knex";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { canonicalJson, contentHash } from "../canonical.ts";
import { mirrorResources } from "../resources.ts";
import { namedGroups } from "../resources/resource.ts";
import type { Column, GroupState } from "../snapshot.ts";
import type { Contact } from "./data-subject.ts";
import { withoutPersonalData, withoutPersonalField } from "./personal-data.ts";

/** Every group whose states the history records. */
export const groupsInHistory = mirrorResources.flatMap((resource) =>
  namedGroups(resource).flatMap(({ group, inHistory }) => (inHistory ? [group] : [])),
);

/** The tables whose rows name their customer in `customer_id`. */
export const ownedTables = mirrorResources.flatMap(({ table, owner }) => (owner === "customer_id" ? [table] : []));

const people = mirrorResources.filter(({ owner }) => owner === "id");

/** SQL condition: the group with this name shows the person itself. */
export const isPerson = (group: string): string => `${group} in (${people.map(({ name }) => `'${name}'`).join(", ")})`;

/**
 * Whether any customer was ever erased. Every writer calls this, `beginWriting` or `erasedAmong` first in its
 * transaction, so that an erasure that begins later waits for the writer (`markErased`).
 */
export async function isAnybodyErased(db: Knex): Promise<boolean> {
  const { rows } = await db
    .raw<{ rows: unknown[] }>("select from mirror.erasures limit 1")
    .options({ name: "mirror-any-erasure" });
  return rows.length > 0;
}

/** Filters these customers for erased ones. */
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

/** Filters these objects for those that belong, or once belonged, to an erased person according to the history. */
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

/** SQL of an address's keyed hash. Without the key, an address cannot be found by hashing guesses. */
const hashed = (text: string): string => `sha256(k.key || convert_to(${text}, 'UTF8'))`;

/** Keeps an erased person's addresses as keyed hashes, so that later events are recognised. Idempotent. */
export async function keepContacts(db: Knex, customerId: string, contacts: readonly Contact[]): Promise<void> {
  await db.raw(
    `insert into mirror.erased_contacts (hash, customer_id)
     select ${hashed("c")}, ? from unnest(?::text[]) c, mirror.erasure_key k on conflict do nothing`,
    [customerId, sqlArray(contacts)],
  );
}

/**
 * Filters these addresses for those that an erased person had and no other customer has now. One query; a second one
 * only if the first finds any, which is rare.
 */
export async function erasedContactsAmong(db: Knex, contacts: readonly Contact[]): Promise<Set<Contact>> {
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

/** Filters these addresses for those of a customer who is not erased. The expressions are those of the indexes. */
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

/**
 * Whether the mirror, its history, or an earlier erasure has the customer. Reads the whole history only after all other
 * tables.
 */
export async function isCustomerKnown(db: Knex, customerId: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { known: boolean }[] }>(
    `select exists (select from mirror.erasures where customer_id = :customerId)
       ${mirrorResources
         .flatMap(({ table, owner }) =>
           owner === null ? [] : [`or exists (select from mirror.${table} where ${owner} = :customerId)`],
         )
         .join("\n       ")}
       or exists (select from mirror.unbelieved
                  where data->>'customer_id' = :customerId or (${isPerson("resource")} and id = :customerId))
       or exists (select from mirror.versions where ${isPerson("resource")} and id = :customerId)
       or exists (select from mirror.versions where data->>'customer_id' = :customerId) as known`,
    { customerId },
  );
  return rows[0]?.known === true;
}

const lockWaitSeconds = 5;
const lockAttempts = 12;
const lockNotAvailable = "55P03";

/**
 * Marks a person as erased. From then on everything written about them is redacted (`redactErased`, redact-events.ts)
 * and no message names them. Waits for writers that began earlier; throws 55P03 if they take longer than a minute.
 * Opens its own transactions, and calls `record` in the one that marks. Idempotent.
 */
export async function markErased(
  db: Knex,
  customerId: string,
  record: (trx: Knex.Transaction) => Promise<void> = async () => {},
): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      await db.transaction(async (trx) => {
        await mark(trx, customerId);
        await record(trx);
      });
      return;
    } catch (error) {
      if (errorCode(error) !== lockNotAvailable || n >= lockAttempts) throw error;
    }
  }
}

async function mark(trx: Knex.Transaction, customerId: string): Promise<void> {
  // Every writer reads this table, so the lock is granted once the last of them has ended. Each wait is short, since
  // new writers queue behind it.
  await trx.raw(`set local lock_timeout = '${lockWaitSeconds}s'`);
  await trx.raw("lock table mirror.erasures in access exclusive mode");
  await trx.raw(
    `insert into mirror.erasures (customer_id) values (?)
     on conflict (customer_id) do update set last_at = now()`,
    [customerId],
  );
}

/** The customer who owns a state, if it shows one. */
const ownerOf = ({ group, id, columns }: GroupState): Column | undefined => {
  const owner = ownerOfGroup.get(group) ?? null;
  if (owner === null) return null;
  return owner === "id" ? id : columns[owner];
};

const ownerOfGroup = new Map(
  mirrorResources.flatMap(({ owner, groups }) => Object.keys(groups).map((group) => [group, owner] as const)),
);

/** Groups that never hold personal data. */
const impersonal = new Set(
  mirrorResources.flatMap((resource) =>
    namedGroups(resource).flatMap(({ group, isImpersonal }) =>
      resource.owner === null || isImpersonal === true ? [group] : [],
    ),
  ),
);

/**
 * Redacts states of erased people in place, before they are written or compared, so that neither the service, a late
 * event nor a replay brings personal data back. A state that names no customer is redacted if another state of its
 * object names an erased one, or, if none names any, if the object ever belonged to an erased one. At most two queries.
 * In a transaction, an erasure that begins later waits for its end.
 */
export async function redactErased(db: Knex, states: readonly GroupState[]): Promise<void> {
  const owned = states.map((state) => ({ state, owner: ownerOf(state) }));
  const ownerOfObject = new Map<string, string>();
  const owners = new Set<string>();
  for (const { state, owner } of owned) {
    if (typeof owner !== "string") continue;
    owners.add(owner);
    ownerOfObject.set(state.id, owner);
  }
  const erased = await erasedAmong(db, [...owners]);
  const unowned = states.filter(({ id, group }) => !ownerOfObject.has(id) && !impersonal.has(group));
  const objects = await erasedObjectsAmong(
    db,
    unowned.map(({ id }) => id),
  );
  for (const { state, owner } of owned) {
    const whose = typeof owner === "string" ? owner : ownerOfObject.get(state.id);
    const isTheirs = whose === undefined ? objects.has(state.id) : erased.has(whose);
    if (isTheirs) redactState(state);
  }
}

function redactState(state: GroupState): void {
  const columns = Object.entries(state.columns).map(([key, value]) => [
    key,
    withoutPersonalField(key, value) as Column,
  ]);
  state.replaceContent(redactedContent(state.json).json, Object.fromEntries(columns) as GroupState["columns"]);
}

/**
 * Canonical content without personal data, and its hash. An order's items are a list; all other contents are objects.
 */
export function redactedContent(json: string): { json: string; hash: string } {
  const content = withoutPersonalData(JSON.parse(json));
  const canonical = Array.isArray(content)
    ? canonicalJson({ items: content }).slice(`{"items": `.length, -1)
    : canonicalJson(content as Record<string, unknown>);
  return { json: canonical, hash: contentHash(canonical) };
}

/** A version ends with the hash of its content (version.ts). */
export const withHash = (version: string, from: string, to: string): string =>
  version.endsWith(from) ? version.slice(0, version.length - from.length) + to : version;
