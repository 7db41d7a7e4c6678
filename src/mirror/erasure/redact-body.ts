import type { EnvelopePlaces } from "../../service/event-envelope.ts";
import { contactsIn, customerNamedBy, idsIn, isObject, subjectOf, wordsOf } from "./owners.ts";
import type { Contact } from "./owners.ts";
import { redacted, withoutPersonalData, withoutPersonalField } from "./personal-data.ts";

/** People who were erased, as far as they concern some events. */
export interface ErasedPeople {
  customers: ReadonlySet<string>;
  /** Their objects, of events that name no customer. */
  objects: ReadonlySet<string>;
  /** Their addresses, of events that name neither. */
  contacts: ReadonlySet<Contact>;
}

/**
 * An event's body without the personal data of these people, or the very same where there is none of theirs. An event
 * about them loses all of it but what the list of personal-data.ts keeps; of one about somebody else, what it embeds of
 * theirs. Can be replayed: the parts of the envelope stay. Pure, idempotent.
 */
export function redactBody(
  places: Readonly<EnvelopePlaces>,
  body: unknown,
  people: ErasedPeople,
): unknown {
  if (isAbout(places, body, people)) return withoutPersonalEnvelope(places, body);
  const { named } = subjectOf(places, body);
  return [...named].some((id) => people.customers.has(id))
    ? withoutEmbedded(body, people.customers)
    : body;
}

/** Bytes that are no JSON cannot be redacted: whether they are about one of these people. */
export function isTextAbout(raw: Buffer, { customers, contacts }: ErasedPeople): boolean {
  const words = wordsOf(raw.toString("utf8"));
  return (
    words.some((word) => customers.has(word)) ||
    [...contactsIn(words)].some((contact) => contacts.has(contact))
  );
}

/** By the customer of its object; else by all whom it names; else by the ids in it; else by the addresses in it. */
function isAbout(places: EnvelopePlaces, body: unknown, people: ErasedPeople): boolean {
  const { customer, named } = subjectOf(places, body);
  if (customer !== null) return people.customers.has(customer);
  if (named.size > 0) return [...named].every((id) => people.customers.has(id));
  if ([...idsIn(body)].some((id) => people.objects.has(id) || people.customers.has(id)))
    return true;
  return (
    people.contacts.size > 0 && [...contactsIn(body)].some((each) => people.contacts.has(each))
  );
}

/** The list knows the keys of objects; where a setting says that the envelope has others, those stay as well. */
function withoutPersonalEnvelope(places: EnvelopePlaces, body: unknown): unknown {
  const kept = withoutPersonalData(body);
  if (!isObject(kept)) return kept;
  const envelope = kept as Record<string, unknown>;
  const parts = { id: "id", type: "type", createdAt: "created_at", apiVersion: "api_version" };
  for (const [part, key] of Object.entries(parts)) {
    const value = valueAt(body, places[part as keyof EnvelopePlaces]);
    if (typeof value === "string") {
      put(envelope, places[part as keyof EnvelopePlaces], withoutPersonalField(key, value));
    }
  }
  const object = valueAt(body, places.object);
  if (object !== undefined) put(envelope, places.object, withoutPersonalData(object));
  return envelope;
}

function valueAt(body: unknown, place: string): unknown {
  return place
    .split(".")
    .reduce<unknown>(
      (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      body,
    );
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

/** Also where a setting names `__proto__`. */
const define = (object: object, key: string, value: unknown): void =>
  void Object.defineProperty(object, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });

const maxDepth = 100;

/** A JSON value without what it embeds of these customers, and without what is nested too deeply to be looked through. */
export function withoutEmbedded(value: unknown, erased: ReadonlySet<string>, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) return redacted;
  if (Array.isArray(value)) return value.map((item) => withoutEmbedded(item, erased, depth + 1));
  const owner = customerNamedBy(value as Record<string, unknown>);
  if (owner !== null && erased.has(owner)) return withoutPersonalData(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, withoutEmbedded(field, erased, depth + 1)]),
  );
}
