import type { Knex } from "knex";
import { rewriteBodies, visitEventsOfCustomer } from "../core/inbox/retention.ts";
import { changesOf, eraseChanges } from "../core/mirror/changes/erase-changes.ts";
import type { PersonTraces } from "../core/mirror/privacy/data-subject.ts";
import {
  eraseHistory,
  eraseReasons,
  eraseRows,
  logErasure,
  objectsOf,
  tracesOf,
} from "../core/mirror/privacy/erase-mirror.ts";
import {
  erasedContactsAmong,
  isCustomerKnown,
  keepContacts,
  markErased,
} from "../core/mirror/privacy/erased-people.ts";
import { addEventTraces, parsedEventOf, redactedEvent } from "../core/mirror/privacy/redact-events.ts";
import { eraseSecretNotes } from "../core/receiver/secrets-store.ts";
import { paragraph } from "../platform/free-text.ts";
import { mentioning, redacted } from "../platform/redaction.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { sqlArray } from "../platform/postgres/values.ts";
import { withoutControls } from "../platform/readable-text.ts";
import type { Config } from "./config/config.ts";
import { type ActCall, ActRefused, type CommandAct, recordOf } from "./people/act.ts";
import { removeNotes } from "./people/cases.ts";
import { optional, reference, text } from "./people/fields.ts";
import type { ErasedByPart, ErasedPerson, Runtime } from "./runtime.ts";

export interface Erased {
  customerId: string;
  counts: Record<string, number>;
  /** True if the mirror shows the customer as not deleted at the service. */
  atService: boolean;
  /** Closed months whose reason names the customer: it is under their seals. */
  sealed: string[];
}

interface ErasingDeps extends Pick<Runtime, "config" | "parts"> {
  db: Knex;
}

interface ErasureInput {
  customer: string;
  reason: string | null;
}

/** Erases one person everywhere: `eraseCustomer`, for a customer who is known here. */
export const erasing: CommandAct<ErasingDeps, ErasureInput, Erased> = {
  name: "customer.erased",
  fields: { customer: reference, reason: optional(text(paragraph)) },
  async run(deps, call) {
    await assertKnown(deps, call.input.customer);
    return eraseCustomer(deps, call);
  },
};

/**
 * Erases one person everywhere. Later events are redacted on arrival, so neither an event, a replay nor the nightly run
 * restores the data. Idempotent: after a crash, a second call completes the erasure. It is many transactions: the first
 * one records its beginning, the last one its counts.
 */
export async function eraseCustomer(
  { db, config: { eventPlaces: places }, parts }: ErasingDeps,
  call: Pick<ActCall<ErasureInput>, "actor" | "input">,
): Promise<Erased> {
  const { customer: customerId, reason } = call.input;
  const subject = { kind: "customer", id: customerId };
  await markErased(db, customerId, (trx) => recordOf({ name: "erasure.begun" }, call)(trx, { subject }));
  const { traces, ids, seqs } = await readTraces(db, places, customerId);
  await keepContacts(db, customerId, [...traces.contacts]);
  const numbers = await db("mirror.orders")
    .whereRaw("id = any(?::text[]) and order_number is not null", [sqlArray(ids)])
    .pluck<string[]>("order_number");
  // Stored events first: they are found by the person's addresses, which must still be in the rows after a crash.
  const events = await eraseBodies(db, places, customerId, { ids, contacts: [...traces.contacts] });
  const changes = await changesOf(db, ids);
  const names = [...numbers, ...traces.contacts, ...traces.names];
  const named = mentioning([customerId, ...ids, ...names]);
  const person: ErasedPerson = { customerId, ids, seqs, names, named };
  // In one transaction, because the history shows which other rows to erase.
  const { counts, sealed } = await inTransaction(db, async (trx) => {
    const { states, hashes } = await eraseHistory(trx, customerId, ids);
    const rows = await eraseRows(trx, customerId, ids, hashes);
    await eraseChanges(trx, { customerId, seqs: changes, hashes });
    const byParts: ErasedByPart[] = [];
    for (const part of parts) byParts.push((await part.erase?.(trx, person)) ?? {});
    const subjects = byParts.flatMap((each) => each.subjects ?? []);
    const notes = await removeNotes(trx, [...renewalsAndChargebacks(ids), ...subjects], named);
    const ownReasons = (await eraseReasons(trx, ids, named)) + (await eraseSecretNotes(trx, named));
    const reasons = byParts.reduce((all, each) => all + (each.reasons ?? 0), ownReasons);
    const ofParts = Object.assign({}, ...byParts.map((each) => each.counts)) as Record<string, number>;
    return {
      counts: { ...rows, history: states, events, ...ofParts, notes, reasons },
      sealed: byParts.flatMap((each) => each.sealed ?? []),
    };
  });
  await inTransaction(db, async (trx) => {
    const kept = reason !== null && named(reason) ? redacted : reason;
    await logErasure(trx, { customerId, by: call.actor.name, reason: kept, counts });
    // The reason is in that log, where the next erasure finds it.
    await recordOf(erasing, call)(trx, { subject, after: counts });
  });
  const live = await db("mirror.customers")
    .where({ id: customerId })
    .whereNull("deleted_at")
    .first<{ id: string } | undefined>("id");
  return { customerId, counts, atService: live !== undefined, sealed };
}

const renewalsAndChargebacks = (ids: readonly string[]) =>
  (["dunning", "chargeback"] as const).map((kind) => ({ kind, ids }));

/**
 * Throws `ActRefused` for an unknown customer. A customer missing from the mirror is searched in the stored events,
 * because all events about them may be dead.
 */
export async function assertKnown({ db, config }: Omit<ErasingDeps, "parts">, customerId: string): Promise<void> {
  if (await isCustomerKnown(db, customerId)) return;
  if ((await readBodies(db, config.eventPlaces, customerId)).isNamed) return;
  throw new ActRefused(
    "unknown",
    `Neither the mirror nor a stored event has a customer ${withoutControls(customerId)}. Nothing was changed.`,
  );
}

/** The person's names and contacts as texts show them, the objects that belong to them, and the events about them. */
async function readTraces(
  db: Knex,
  places: Config["eventPlaces"],
  customerId: string,
): Promise<{ traces: PersonTraces; ids: string[]; seqs: number[] }> {
  const [stored, bodies] = [await tracesOf(db, customerId), await readBodies(db, places, customerId)];
  const { contacts, names } = stored;
  const ids = new Set([...(await objectsOf(db, customerId)), ...bodies.objects]);
  return {
    traces: {
      contacts: new Set([...contacts, ...bodies.traces.contacts]),
      names: new Set([...names, ...bodies.traces.names]),
    },
    ids: [...ids],
    seqs: bodies.seqs,
  };
}

/** The same, from stored events only. */
async function readBodies(
  db: Knex,
  places: Config["eventPlaces"],
  customerId: string,
): Promise<{ traces: PersonTraces; objects: Set<string>; seqs: number[]; isNamed: boolean }> {
  const traces: PersonTraces = { contacts: new Set(), names: new Set() };
  const found = { traces, objects: new Set<string>() };
  const seqs: number[] = [];
  let isNamed = false;
  await visitEventsOfCustomer(db, customerId, (seq, raw) => {
    const role = addEventTraces(places, raw, customerId, found);
    if (role !== null) isNamed = true;
    if (role === "subject") seqs.push(seq);
  });
  return { ...found, seqs, isNamed };
}

/** Redacts the person in stored events. Returns how many events changed. */
async function eraseBodies(
  db: Knex,
  places: Config["eventPlaces"],
  customerId: string,
  { ids, contacts: known }: { ids: readonly string[]; contacts: readonly string[] },
): Promise<number> {
  const contacts = await erasedContactsAmong(db, known);
  const people = { customers: new Set([customerId]), objects: new Set(ids), contacts };
  const wanted = { customerId, objects: ids, contacts: [...contacts] };
  return rewriteBodies(db, wanted, (raw) => {
    const left = redactedEvent(places, parsedEventOf(raw), people);
    return left === null ? raw : left.raw;
  });
}
