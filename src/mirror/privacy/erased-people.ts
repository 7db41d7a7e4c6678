import type { Knex } from "knex";
import { errorCode } from "../../platform/postgres/errors.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { canonicalJson, contentHash } from "../canonical.ts";
import { mirrorResources } from "../resources.ts";
import { namedGroups } from "../resources/resource.ts";
import type { Column, GroupState } from "../snapshot.ts";
import type { Contact } from "./data-subject.ts";
import { withoutPersonalData, withoutPersonalField } from "./personal-data.ts";

/** Every group whose states history keeps. */
export const groupsInHistory = mirrorResources.flatMap((resource) =>
  namedGroups(resource).flatMap(({ group, inHistory }) => (inHistory ? [group] : [])),
);

/** The tables whose rows say in `customer_id` whose they are. */
export const ownedTables = mirrorResources.flatMap(({ table, owner }) =>
  owner === "customer_id" ? [table] : [],
);

const people = mirrorResources.filter(({ owner }) => owner === "id");

/** SQL: a group, by its name, shows a person. */
export const isPerson = (group: string): string =>
  `${group} in (${people.map(({ name }) => `'${name}'`).join(", ")})`;

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

const waitSeconds = 5;
const tries = 12;
const lockNotAvailable = "55P03";

/** Whether the mirror, its history, or an earlier erasure knows the customer. Reads the whole history of a stranger. */
export async function isCustomerKnown(db: Knex, customerId: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { known: boolean }[] }>(
    `select exists (select from mirror.erasures where customer_id = :customerId)
       ${mirrorResources
         .flatMap(({ table, owner }) =>
           owner === null
             ? []
             : [`or exists (select from mirror.${table} where ${owner} = :customerId)`],
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

/**
 * From here on everything that is written about the person is redacted (`redactErased`, redact-events.ts), and no
 * message names them: waits until no writer is under way that began before. Opens its own transactions. Idempotent.
 */
export async function markErased(db: Knex, customerId: string): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      await db.transaction((trx) => mark(trx, customerId));
      return;
    } catch (error) {
      if (errorCode(error) !== lockNotAvailable || n >= tries) throw error;
    }
  }
}

async function mark(trx: Knex.Transaction, customerId: string): Promise<void> {
  // Every writer reads this table, so that the lock is had when the last of them has ended. A short wait for it, since new
  // writers queue behind.
  await trx.raw(`set local lock_timeout = '${waitSeconds}s'`);
  await trx.raw("lock table mirror.erasures in access exclusive mode");
  await trx.raw(
    `insert into mirror.erasures (customer_id) values (?)
     on conflict (customer_id) do update set last_at = now()`,
    [customerId],
  );
}

/** The customer that a state belongs to, as far as it shows one. */
const ownerOf = ({ group, id, columns }: GroupState): Column | undefined => {
  const owner = ownerOfGroup.get(group) ?? null;
  if (owner === null) return null;
  return owner === "id" ? id : columns[owner];
};

const ownerOfGroup = new Map(
  mirrorResources.flatMap(({ owner, groups }) =>
    Object.keys(groups).map((group) => [group, owner] as const),
  ),
);

/** Groups that hold nothing personal, whoever they are of. */
const impersonal = new Set(
  mirrorResources.flatMap((resource) =>
    namedGroups(resource).flatMap(({ group, isImpersonal }) =>
      resource.owner === null || isImpersonal === true ? [group] : [],
    ),
  ),
);

/**
 * Takes what is personal out of the states of people who were erased, before they are written or compared: what the
 * service still shows, a late event or a replay must not bring it back. A state that shows no customer belongs to whom
 * another state of its object shows, or else to whom its object ever belonged. Changes the states in place. At most two
 * queries; in a transaction, an erasure that begins waits for its end.
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
  const unowned = states.filter(
    ({ id, group }) => !ownerOfObject.has(id) && !impersonal.has(group),
  );
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
  state.replaceContent(
    redactedContent(state.json).json,
    Object.fromEntries(columns) as GroupState["columns"],
  );
}

/** Canonical content without what is personal, and its hash. The content of an order's items is their list. */
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
