import type { Knex } from "knex";
import { parseEventBody, readEventParts } from "../../service/event-envelope.ts";
import type { EnvelopePlaces } from "../../service/event-envelope.ts";
import { isWireId } from "../../service/resources/wire-types.ts";
import { hasRepeatedKeys } from "../repeated-keys.ts";
import {
  erasedAmong,
  erasedContactsAmong,
  erasedObjectsAmong,
  isAnybodyErased,
} from "./erased-people.ts";
import { addTraces, contactsIn, idsIn, subjectOf, wordsOf } from "./owners.ts";
import type { PersonTraces } from "./owners.ts";
import { isTextAbout, redactBody, withoutEmbedded } from "./redact-body.ts";
import type { ErasedPeople } from "./redact-body.ts";

/** What an event's bytes say; undefined where they are no JSON. */
interface Arrival {
  raw: Buffer;
  body: unknown;
}

/** What stays of a body; null where the bytes are no JSON, so that nothing of them can stay. */
export interface RedactedArrival {
  raw: Buffer | null;
  body: unknown;
}

/**
 * Which of these events are about people who were erased, with what stays of their bodies: from the moment that somebody
 * is erased, no event brings the person back, whatever it says and whatever becomes of it. One query where nobody ever was
 * erased, and else one to four. Needs the transaction that keeps what is left.
 */
export async function redactArrivals<T extends Arrival>(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePlaces>,
  events: readonly T[],
): Promise<Map<T, RedactedArrival>> {
  const found = new Map<T, RedactedArrival>();
  if (events.length === 0 || !(await isAnybodyErased(trx))) return found;
  const people = await erasedPeopleIn(trx, places, events);
  if (people === null) return found;
  for (const event of events) {
    const left = redactedArrival(places, event, people);
    if (left !== null) found.set(event, left);
  }
  return found;
}

/** Null where nothing of it is theirs. Pure. */
export function redactedArrival(
  places: Readonly<EnvelopePlaces>,
  { raw, body }: Arrival,
  people: ErasedPeople,
): RedactedArrival | null {
  if (body === undefined) return isTextAbout(raw, people) ? { raw: null, body } : null;
  const redacted = redactBody(places, body, people);
  if (redacted === body) return withoutHidden({ raw, body }, people);
  const left = Buffer.from(JSON.stringify(redacted));
  // What is redacted already stays as it is, to the byte.
  return left.equals(raw) ? null : { raw: left, body: redacted };
}

/** Of somebody else's event that names these people under a key which is said again: what it says to everybody. */
function withoutHidden({ raw, body }: Arrival, people: ErasedPeople): RedactedArrival | null {
  if (!hasRepeatedKeys(raw, body) || !isTextAbout(raw, people)) return null;
  const said = withoutEmbedded(body, people.customers);
  return { raw: Buffer.from(JSON.stringify(said)), body: said };
}

async function erasedPeopleIn(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePlaces>,
  events: readonly Arrival[],
): Promise<ErasedPeople | null> {
  const [customers, objects, contacts] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const addAll = (to: Set<string>, from: Iterable<string>): void => {
    for (const each of from) to.add(each);
  };
  for (const { raw, body } of events) {
    const subject = subjectOf(places, body);
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

export const arrivalOf = (raw: Buffer): Arrival => ({ raw, body: parseEventBody(raw) });

/**
 * Whether a stored event is about this customer, or only names them, with what it shows as theirs added to `found`: the
 * object that it is about, addresses, names. Bytes that are pruned (null) were chosen by what they were about.
 */
export function addBody(
  places: Readonly<EnvelopePlaces>,
  raw: Buffer | null,
  customerId: string,
  found: { traces: PersonTraces; objects: Set<string> },
): "subject" | "named" | null {
  if (raw === null) return "subject";
  const body = parseEventBody(raw);
  if (body === undefined) {
    return wordsOf(raw.toString("utf8")).includes(customerId) ? "subject" : null;
  }
  const { customer, named } = subjectOf(places, body);
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
