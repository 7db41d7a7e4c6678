import type { Knex } from "knex";
import { type EnvelopePaths, parseEventBody, readEventParts } from "../../contract/event-envelope.ts";
import { isObject, isWireId } from "../../contract/wire-types.ts";
import { redacted } from "../../../platform/redaction.ts";
import {
  type Contact,
  type PersonTraces,
  addTraces,
  contactsIn,
  customerNamedBy,
  idsIn,
  customersIn,
  wordsOf,
} from "./data-subject.ts";
import { erasedAmong, erasedContactsAmong, erasedObjectsAmong, isAnybodyErased } from "./erased-people.ts";
import { withoutPersonalData, withoutPersonalField } from "./personal-data.ts";
import { hasRepeatedKeys } from "./repeated-keys.ts";

/** An event's bytes and their parsed body; `body` is undefined if they are no JSON. */
interface ParsedEvent {
  raw: Buffer;
  body: unknown;
}

/** A redacted event. `raw` is null if the bytes are no JSON: then nothing in them can be kept. */
export interface RedactedEvent {
  raw: Buffer | null;
  body: unknown;
}

/**
 * Redacts the events that hold data of erased people. Once a person is erased, no event brings the data back, whatever
 * its content or outcome. One query if no customer was ever erased, else up to five. Needs the transaction that stores
 * the redacted events.
 */
export async function redactErasedEvents<T extends ParsedEvent>(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePaths>,
  events: readonly T[],
): Promise<Map<T, RedactedEvent>> {
  const found = new Map<T, RedactedEvent>();
  if (events.length === 0 || !(await isAnybodyErased(trx))) return found;
  const people = await erasedPeopleIn(trx, places, events);
  if (people === null) return found;
  for (const event of events) {
    const left = redactedEvent(places, event, people);
    if (left !== null) found.set(event, left);
  }
  return found;
}

/** The redacted event; null if it holds no data of these people. */
export function redactedEvent(
  places: Readonly<EnvelopePaths>,
  { raw, body }: ParsedEvent,
  people: ErasedPeople,
): RedactedEvent | null {
  if (body === undefined) return isTextAbout(raw, people) ? { raw: null, body } : null;
  const left = redactBody(places, body, people);
  if (left === body) return withoutHidden({ raw, body }, people);
  const leftBytes = Buffer.from(JSON.stringify(left));
  // An event that is redacted already keeps its exact bytes.
  return leftBytes.equals(raw) ? null : { raw: leftBytes, body: left };
}

/**
 * An event about another person may name these people under a repeated key: only its bytes show the value that the
 * parser dropped. The event as parsed replaces them. Null if the event does not.
 */
function withoutHidden({ raw, body }: ParsedEvent, people: ErasedPeople): RedactedEvent | null {
  if (!hasRepeatedKeys(raw, body) || !isTextAbout(raw, people)) return null;
  const left = withoutEmbedded(body, people.customers);
  return { raw: Buffer.from(JSON.stringify(left)), body: left };
}

async function erasedPeopleIn(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePaths>,
  events: readonly ParsedEvent[],
): Promise<ErasedPeople | null> {
  const [customers, objects, contacts] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const addAll = (to: Set<string>, from: Iterable<string>): void => {
    for (const each of from) to.add(each);
  };
  for (const { raw, body } of events) {
    const subject = customersIn(places, body);
    addAll(customers, subject.named);
    const isHiding = body !== undefined && hasRepeatedKeys(raw, body);
    if (subject.named.size > 0 && !isHiding) continue;
    const ids = idsIn(body);
    addAll(customers, ids);
    addAll(objects, ids);
    const words = body === undefined || isHiding ? wordsOf(raw.toString("utf8")) : [];
    addAll(customers, words);
    addAll(contacts, contactsIn(isHiding ? words : (body ?? words)));
  }
  const people = {
    customers: await erasedAmong(trx, [...customers]),
    objects: await erasedObjectsAmong(trx, [...objects]),
    contacts: await erasedContactsAmong(trx, [...contacts]),
  };
  const isNobody = people.customers.size + people.objects.size + people.contacts.size === 0;
  return isNobody ? null : people;
}

export const parsedEventOf = (raw: Buffer): ParsedEvent => ({ raw, body: parseEventBody(raw) });

/**
 * Whether a stored event is about this customer (`subject`), only names them, or neither (null). Adds the customer's
 * traces in it to `found`: its object, addresses and names. `raw` is null where the bytes were pruned: such an event
 * was found by its object, which is the customer.
 */
export function addEventTraces(
  places: Readonly<EnvelopePaths>,
  raw: Buffer | null,
  customerId: string,
  found: { traces: PersonTraces; objects: Set<string> },
): "subject" | "named" | null {
  if (raw === null) return "subject";
  const body = parseEventBody(raw);
  if (body === undefined) {
    return wordsOf(raw.toString("utf8")).includes(customerId) ? "subject" : null;
  }
  const { customer, named } = customersIn(places, body);
  if (named.size === 0) return idsIn(body).has(customerId) ? "subject" : null;
  const { object } = readEventParts(places, body);
  if (customer === customerId && object !== null) {
    if (isWireId(object["id"])) found.objects.add(object["id"]);
    addTraces(object, customerId, found.traces, { isTheirs: true });
  }
  addTraces(body, customerId, found.traces);
  if (!named.has(customerId)) return null;
  return customer === customerId || (customer === null && named.size === 1) ? "subject" : "named";
}

/** The erased people whom some events are about or name. */
export interface ErasedPeople {
  customers: ReadonlySet<string>;
  /** Their objects, for events that name no customer. */
  objects: ReadonlySet<string>;
  /** Their addresses, for events that name neither. */
  contacts: ReadonlySet<Contact>;
}

/**
 * An event's body without the personal data of these people; the same value if it has none of theirs. An event about
 * them keeps only what personal-data.ts lists. An event about another person loses only the parts that embed theirs.
 * The envelope survives, so the event can be replayed. Idempotent.
 */
function redactBody(places: Readonly<EnvelopePaths>, body: unknown, people: ErasedPeople): unknown {
  if (isAbout(places, body, people)) return withoutPersonalEnvelope(places, body);
  const { named } = customersIn(places, body);
  return [...named].some((id) => people.customers.has(id)) ? withoutEmbedded(body, people.customers) : body;
}

/** Whether bytes name one of these people. For bytes that are no JSON, or that hide something from the parser. */
function isTextAbout(raw: Buffer, { customers, contacts }: ErasedPeople): boolean {
  const words = wordsOf(raw.toString("utf8"));
  return words.some((word) => customers.has(word)) || [...contactsIn(words)].some((contact) => contacts.has(contact));
}

/** Decides by the customer of its object; else by the customers it names; else by its ids; else by its addresses. */
function isAbout(places: EnvelopePaths, body: unknown, people: ErasedPeople): boolean {
  const { customer, named } = customersIn(places, body);
  if (customer !== null) return people.customers.has(customer);
  if (named.size > 0) return [...named].every((id) => people.customers.has(id));
  if ([...idsIn(body)].some((id) => people.objects.has(id) || people.customers.has(id))) return true;
  return people.contacts.size > 0 && [...contactsIn(body)].some((each) => people.contacts.has(each));
}

/** Keeps the envelope too, whose keys a setting (SVC_EVENT_PLACES) may name otherwise than personal-data.ts does. */
function withoutPersonalEnvelope(places: EnvelopePaths, body: unknown): unknown {
  const kept = withoutPersonalData(body);
  if (!isObject(kept)) return kept;
  const envelope = kept as Record<string, unknown>;
  const parts = { id: "id", type: "type", createdAt: "created_at", apiVersion: "api_version" };
  for (const [part, key] of Object.entries(parts)) {
    const value = valueAt(body, places[part as keyof EnvelopePaths]);
    if (typeof value === "string") {
      put(envelope, places[part as keyof EnvelopePaths], withoutPersonalField(key, value));
    }
  }
  const object = valueAt(body, places.object);
  if (object !== undefined) put(envelope, places.object, withoutPersonalData(object));
  return envelope;
}

function valueAt(body: unknown, place: string): unknown {
  return place
    .split(".")
    .reduce<unknown>((value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined), body);
}

function put(body: Record<string, unknown>, place: string, value: unknown): void {
  const [key = "", ...rest] = place.split(".");
  if (rest.length === 0) {
    define(body, key, value);
    return;
  }
  const inner = Object.hasOwn(body, key) && isObject(body[key]) ? { ...body[key] } : {};
  put(inner, rest.join("."), value);
  define(body, key, inner);
}

/** Safe for the key `__proto__`, which a setting may name. */
const define = (object: object, key: string, value: unknown): void =>
  void Object.defineProperty(object, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });

const maxDepth = 100;

/**
 * A JSON value without the embedded data of these customers, and without values that are nested too deeply to search.
 */
function withoutEmbedded(value: unknown, erased: ReadonlySet<string>, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) return redacted;
  if (Array.isArray(value)) return value.map((item) => withoutEmbedded(item, erased, depth + 1));
  const owner = customerNamedBy(value as Record<string, unknown>);
  if (owner !== null && erased.has(owner)) return withoutPersonalData(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, withoutEmbedded(field, erased, depth + 1)]),
  );
}
