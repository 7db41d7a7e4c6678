import { type EnvelopePaths, readEventParts } from "../../contract/event-envelope.ts";
import { type WireObject, isObject, isWireId } from "../../contract/wire-types.ts";

/** The customers that an event's body names. */
export interface EventSubject {
  /** The customer of the event's own object. */
  customer: string | null;
  /** All customers named, at any depth. */
  named: ReadonlySet<string>;
}

/** Deeper content cannot be stored in the mirror (canonical.ts). */
const maxDepth = 100;

/** Finds the customers in a parsed body. */
export function customersIn(places: Readonly<EnvelopePaths>, body: unknown): EventSubject {
  const named = new Set<string>();
  collect(body, named, 0);
  const { type, object } = readEventParts(places, body);
  const customer = object === null ? null : (customerNamedBy(object) ?? ownId(type, object));
  if (customer !== null) named.add(customer);
  return { customer, named };
}

/** The object of a `customer.*` event that names no customer is the customer. */
const ownId = (type: string | null, object: WireObject): string | null =>
  type?.split(".", 1)[0] === "customer" && isWireId(object["id"]) ? object["id"] : null;

/** The customer who owns an object: named by id, or embedded. */
export function customerNamedBy(object: WireObject): string | null {
  const { customer_id: id, customer } = object;
  if (isWireId(id)) return id;
  if (isWireId(customer)) return customer;
  const embedded = isObject(customer) ? customer["id"] : undefined;
  return isWireId(embedded) ? embedded : null;
}

function collect(value: unknown, named: Set<string>, depth: number): void {
  if (typeof value !== "object" || value === null || depth > maxDepth) return;
  if (!Array.isArray(value)) {
    const customer = customerNamedBy(value as WireObject);
    if (customer !== null) named.add(customer);
  }
  for (const field of Object.values(value)) collect(field, named, depth + 1);
}

/** More than any real event has: a hostile one must not cost a query with a million ids. */
const maxTexts = 2_000;

/** Every text that may be an id, at any depth. For events that name no customer in the usual places. */
export function idsIn(value: unknown, found = new Set<string>(), depth = 0): Set<string> {
  if (found.size >= maxTexts || depth > maxDepth) return found;
  if (isWireId(value)) found.add(value);
  else if (typeof value === "object" && value !== null) {
    for (const field of Object.values(value)) idsIn(field, found, depth + 1);
  }
  return found;
}

/** A person's e-mail address or phone number, normalized so that equal ones compare equal. */
export type Contact = string;

/** More than any real event has, as `maxTexts`. */
const maxContacts = 500;

/** Every e-mail address and phone number in the texts of a value, at any depth. */
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

/** Identifying data of a person other than ids. */
export interface PersonTraces {
  contacts: Set<Contact>;
  /** First and last name together: either alone may belong to anyone. */
  names: Set<string>;
}

/** Keys that hold the person's own address. An address under another key may be another person's. */
const contactKeys = ["email", "phone"];
/** Parts of an object that belong to its customer. */
const ownParts = ["customer", "shipping_address", "billing_address", "billing_details"];

/**
 * Adds the e-mail addresses, phone numbers and names of every object in a value that belongs to the customer.
 * `isTheirs`: the value itself does, even if it names no customer.
 */
export function addTraces(
  value: unknown,
  customerId: string,
  traces: PersonTraces,
  { isTheirs = false, depth = 0 }: { isTheirs?: boolean; depth?: number } = {},
): void {
  if (typeof value !== "object" || value === null || depth > maxDepth) return;
  const owner = isObject(value) ? customerNamedBy(value) : null;
  const isOwn = owner === null ? isTheirs : owner === customerId;
  if (isOwn && isObject(value)) {
    for (const key of contactKeys) {
      for (const contact of contactsIn(value[key])) traces.contacts.add(contact);
    }
    const { first_name: first, last_name: last, full_name: full } = value;
    const whole = typeof full === "string" ? full : [first, last].join(" ");
    if (/\S\s+\S/.test(whole)) traces.names.add(whole.trim());
  }
  for (const [key, part] of Object.entries(value)) {
    addTraces(part, customerId, traces, {
      isTheirs: isOwn && ownParts.includes(key),
      depth: depth + 1,
    });
  }
}

const maxWords = 20_000;
const maxWordLength = 320;

/**
 * The words of a text that may be ids or addresses, as they stand and with their escapes decoded. Leaves out words that
 * Postgres would refuse.
 */
export function wordsOf(text: string): string[] {
  const plain = withoutEscapes(text);
  return plain === text ? plainWords(text) : [...plainWords(text), ...plainWords(plain)];
}

/** Decodes numeric escapes of JSON, URLs and HTML. ASCII only, which is enough for ids and addresses. */
const withoutEscapes = (text: string): string =>
  text.replaceAll(
    /\\u00([2-7][0-9a-f])|%([2-7][0-9a-f])|&#x0{0,4}([2-7][0-9a-f]);|&#0{0,4}(\d{2,3});/gi,
    (all, json?: string, url?: string, html?: string, decimal?: string) => {
      const hex = json ?? url ?? html;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : all;
    },
  );

const plainWords = (text: string): string[] =>
  text
    .split(/[\s<>()[\]{},;:"'\\|=&]+/)
    .filter((word) => word.length > 0 && word.length <= maxWordLength && !/\p{Cc}/u.test(word))
    .slice(0, maxWords);

const minPhoneDigits = 7;

function contactsOfText(text: string): Contact[] {
  const mayHaveAddress = text.includes("@") || /%40|\\u0040|&#(?:x0*40|0*64);/i.test(text);
  const addresses = mayHaveAddress ? wordsOf(text).filter((word) => word.includes("@")) : [];
  const isNumber = text.length <= 40 && /^\+?[\d\s().-]+$/.test(text);
  // Within longer text, only numbers in the form of an international phone number count.
  const numbers = isNumber ? [text] : (text.match(/(?:\+|\b00)\d[\d ().-]{5,24}\d/g) ?? []);
  const phones = numbers.flatMap((number) => {
    const digits = number.replaceAll(/\D/g, "").replace(/^00/, "");
    return digits.length >= minPhoneDigits ? [`+${digits}`] : [];
  });
  return [...addresses.map((word) => word.toLowerCase().replace(/\.$/, "")), ...phones];
}
