import type { EnvelopePlaces } from "../../service/event-envelope.ts";
import { readEventParts } from "../../service/event-envelope.ts";
import { isWireId } from "../../service/resources/wire-types.ts";

type WireObject = Readonly<Record<string, unknown>>;

/** Whom an event is about, as far as its body says. */
export interface EventSubject {
  /** The customer of the event's own object. */
  customer: string | null;
  /** All customers that it names, at any depth. */
  named: ReadonlySet<string>;
  /** Objects that it names; of use where it names no customer. */
  objects: ReadonlySet<string>;
}

const maxDepth = 100;

/** What a parsed body says of its customer. Pure. */
export function subjectOf(places: Readonly<EnvelopePlaces>, body: unknown): EventSubject {
  const named = new Set<string>();
  const objects = new Set<string>();
  collect(body, { named, objects }, 0);
  const { type, object } = readEventParts(places, body);
  const customer = object === null ? null : (customerNamedBy(object) ?? ownId(type, object));
  if (customer !== null) named.add(customer);
  return { customer, named, objects };
}

/** An event of the customers' family shows a customer, unless its object belongs to one. */
const ownId = (type: string | null, object: WireObject): string | null =>
  type?.split(".", 1)[0] === "customer" && isWireId(object["id"]) ? object["id"] : null;

/** The customer that an object says it belongs to: by id, or embedded. */
export function customerNamedBy(object: WireObject): string | null {
  const { customer_id: id, customer } = object;
  if (isWireId(id)) return id;
  if (isWireId(customer)) return customer;
  const embedded = isObject(customer) ? customer["id"] : undefined;
  return isWireId(embedded) ? embedded : null;
}

const objectKeys = new Set(["id", "order_id", "subscription_id", "transaction_id"]);

function collect(
  value: unknown,
  found: { named: Set<string>; objects: Set<string> },
  depth: number,
): void {
  if (typeof value !== "object" || value === null || depth > maxDepth) return;
  if (!Array.isArray(value)) {
    const customer = customerNamedBy(value as WireObject);
    if (customer !== null) found.named.add(customer);
  }
  for (const [key, field] of Object.entries(value)) {
    if (objectKeys.has(key) && isWireId(field)) found.objects.add(field);
    collect(field, found, depth + 1);
  }
}

/** A person's e-mail address or phone number, in the one form by which it is known again. */
export type Contact = string;

/** More than any event has. */
const maxContacts = 500;

/** Every e-mail address and phone number in the texts of a value, at any depth; of bytes that are no JSON, in all of it. */
export function contactsIn(value: unknown): Set<Contact> {
  const contacts = new Set<Contact>();
  collectContacts(value, contacts, 0);
  return contacts;
}

function collectContacts(value: unknown, contacts: Set<Contact>, depth: number): void {
  if (contacts.size >= maxContacts || depth > maxDepth) return;
  if (typeof value === "string") {
    for (const contact of contactsOfText(value)) contacts.add(contact);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, field] of Object.entries(value)) {
      collectContacts(key, contacts, depth + 1);
      collectContacts(field, contacts, depth + 1);
    }
  }
}

const maxWords = 20_000;
const maxWordLength = 320;

/** What may be an id or an address; nothing that Postgres would refuse. */
export const wordsOf = (text: string): string[] =>
  text
    .split(/[\s<>()[\]{},;:"'\\|=&]+/)
    .filter((word) => word.length > 0 && word.length <= maxWordLength && !/\p{Cc}/u.test(word))
    .slice(0, maxWords);

const minPhoneDigits = 7;

function contactsOfText(text: string): Contact[] {
  const addresses = text.includes("@") ? wordsOf(text).filter((word) => word.includes("@")) : [];
  const digits =
    text.length <= 40 && /^\+?[\d\s().-]+$/.test(text) ? text.replaceAll(/\D/g, "") : "";
  const phones = digits.length >= minPhoneDigits ? [`+${digits}`] : [];
  return [...addresses.map((word) => word.toLowerCase().replace(/\.$/, "")), ...phones];
}

export const isObject = (value: unknown): value is WireObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
