import { text } from "../../app/people/fields.ts";
import { parserOf } from "../../app/cli/command.ts";
import type { Command } from "commander";
import type { Knex } from "knex";
import { rewriteBodies, visitEventsOfCustomer } from "../../core/inbox/retention.ts";
import { erasePauseReasons, eraseRuns } from "../../parts/delivery/dispatch/erase-runs.ts";
import { changesOf, eraseChanges } from "../../core/mirror/changes/erase-changes.ts";
import type { PersonTraces } from "../../core/mirror/privacy/data-subject.ts";
import {
  eraseHistory,
  eraseReasons,
  eraseRows,
  logErasure,
  objectsOf,
  tracesOf,
} from "../../core/mirror/privacy/erase-mirror.ts";
import {
  erasedContactsAmong,
  isCustomerKnown,
  keepContacts,
  markErased,
} from "../../core/mirror/privacy/erased-people.ts";
import { recordAct } from "../../app/people/audit.ts";
import { removeNotes } from "../../app/people/cases.ts";
import { paragraph } from "../../platform/free-text.ts";
import { mentioning } from "../../platform/mentions.ts";
import { redacted } from "../../platform/redaction.ts";
import { addEventTraces, parsedEventOf, redactedEvent } from "../../core/mirror/privacy/redact-events.ts";
import { UsageError } from "../../platform/errors.ts";
import { moneyText } from "../../platform/money.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { maskedEmail } from "../../platform/redaction.ts";
import { eraseSecretNotes } from "../../core/receiver/erase-notes.ts";
import { findingsOn, redactFindings, redactNotes } from "../../parts/reconcile/findings/redact-findings.ts";
import type { Config } from "../../app/config/config.ts";
import { optionalRooms } from "../optional-rooms.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, requirePerson } from "../../app/cli/acting-person.ts";
import { assertCanAsk, confirm } from "../../app/cli/confirm.ts";
import type { CliContext } from "../../app/cli/context.ts";

interface EraseOptions {
  by?: string;
  reason?: string;
  yes?: boolean;
  json?: boolean;
}

export function registerCustomers(program: Command, context: CliContext): void {
  program
    .command("customers")
    .description("the people in the mirror")
    .command("erase")
    .description(
      "redact one customer for good in mirror, history, stored events, findings, alerts and notes, after asking",
    )
    .argument("<id>", "the customer's id")
    .option(
      "--by <name>",
      "name of the person who asks for it, for the audit (default: this system's user, if a person)",
      parsePerson,
    )
    .option("--reason <text>", "the reason, for the audit; name no customer", parserOf(text(paragraph)))
    .option("--yes", "redact without asking")
    .option("--json", "print JSON")
    .action((id: string, options: EraseOptions) => erase(context, id, options));
}

async function erase(context: CliContext, id: string, options: EraseOptions): Promise<void> {
  const { reason = null, yes, json } = options;
  if (yes !== true) assertCanAsk(context);
  const by = options.by ?? requirePerson(context.user());
  const erased = await context.withRuntime(
    "customers",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const { eventPlaces: places, timeZone } = runtime.config;
      await assertKnown(db, places, id);
      if (yes !== true) {
        // To the terminal only: personal data must not be logged.
        context.stderr.write(summaryText(await summarizeCustomer(db, id), timeZone));
        await confirm(context, "This cannot be undone. Redact everything that identifies this customer?");
      }
      return eraseCustomer(db, places, { customerId: id, by, reason });
    },
    { logLevel: "warn" },
  );
  if (json === true) {
    context.stdout.write(`${JSON.stringify(erased)}\n`);
    return;
  }
  const counts = Object.entries(erased.counts).map(([what, n]) => `${what} ${n}`);
  context.stdout.write(`${id} is redacted: ${counts.join(", ")}.\n`);
  context.stderr.write(
    erased.atService
      ? "tallyhook: the service still has this customer. Delete it there as well; until then, what it sends is " +
          "redacted on arrival.\n"
      : "",
  );
  if (erased.sealed.length > 0) {
    context.stderr.write(
      "tallyhook: the reasons of closed months name this customer, and stay under their seals: " +
        `${erased.sealed.join(", ")}.\n`,
    );
  }
}

interface Erased {
  customerId: string;
  counts: Record<string, number>;
  /** True if the mirror shows the customer as not deleted at the service. */
  atService: boolean;
  /** Closed months whose reason names the customer: it is under their seals. */
  sealed: string[];
}

/**
 * Erases one person everywhere. Later events are redacted on arrival, so neither an event, a replay nor the nightly run
 * restores the data. Idempotent: after a crash, a second call completes the erasure.
 */
export async function eraseCustomer(
  db: Knex,
  places: Config["eventPlaces"],
  { customerId, by, reason }: { customerId: string; by: string; reason: string | null },
): Promise<Erased> {
  await markErased(db, customerId);
  const { traces, ids, seqs } = await readTraces(db, places, customerId);
  await keepContacts(db, customerId, [...traces.contacts]);
  const numbers = await db("mirror.orders")
    .whereRaw("id = any(?::text[]) and order_number is not null", [sqlArray(ids)])
    .pluck<string[]>("order_number");
  // Stored events first: they are found by the person's addresses, which must still be in the rows after a crash.
  const events = await eraseBodies(db, places, customerId, { ids, contacts: [...traces.contacts] });
  const changes = await changesOf(db, ids);
  const names = [...numbers, ...traces.contacts, ...traces.names];
  const person = { customerId, ids, seqs, names };
  const named = mentioning([customerId, ...ids, ...names]);
  let sealed: string[] = [];
  // In one transaction, because the history shows which other rows to erase.
  const counts = await inTransaction(db, async (trx) => {
    const { states, hashes } = await eraseHistory(trx, customerId, ids);
    const redactedRows = {
      ...(await eraseRows(trx, customerId, ids, hashes)),
      history: states,
      events,
      findings: await redactFindings(trx, ids),
      ...(await optionalRooms.alerts?.redact(trx, person)),
      notes: await eraseNotes(trx, person, named),
      ...(await eraseTexts(trx)),
    };
    await eraseChanges(trx, { customerId, seqs: changes, hashes });
    await eraseRuns(trx, ids);
    return redactedRows;
  });

  /** Texts written by people elsewhere, where they name the person. */
  async function eraseTexts(trx: Knex.Transaction): Promise<{ reasons: number }> {
    const ofMonths = await optionalRooms.reports?.eraseReasons(trx, named);
    sealed = ofMonths?.sealed ?? [];
    const reasons =
      (await redactNotes(trx, named)) +
      (await eraseReasons(trx, ids, named)) +
      (await erasePauseReasons(trx, named)) +
      (await eraseSecretNotes(trx, named)) +
      (ofMonths?.redacted ?? 0);
    return { reasons };
  }
  await inTransaction(db, async (trx) => {
    const kept = reason !== null && named(reason) ? redacted : reason;
    await logErasure(trx, { customerId, by, reason: kept, counts });
    // The reason is in that log, where the next erasure finds it.
    const actor = { accountId: null, name: by, via: "command line", address: null } as const;
    const subject = { kind: "customer", id: customerId };
    await recordAct(trx, actor, { action: "customer.erased", subject, after: counts });
  });
  const live = await db("mirror.customers")
    .where({ id: customerId })
    .whereNull("deleted_at")
    .first<{ id: string } | undefined>("id");
  return { customerId, counts, atService: live !== undefined, sealed };
}

/** Removes what people wrote on the person's renewals, chargebacks, findings and alerts, or about the person elsewhere. */
async function eraseNotes(
  trx: Knex.Transaction,
  person: {
    customerId: string;
    ids: readonly string[];
    seqs: readonly number[];
    names: readonly string[];
  },
  named: (text: string) => boolean,
): Promise<number> {
  const { ids } = person;
  return removeNotes(
    trx,
    [
      { kind: "dunning", ids },
      { kind: "chargeback", ids },
      { kind: "finding", ids: await findingsOn(trx, ids) },
      { kind: "alert", ids: (await optionalRooms.alerts?.about(trx, person)) ?? [] },
    ],
    named,
  );
}

/**
 * Throws `UsageError` for an unknown customer. A customer missing from the mirror is searched in the stored events,
 * because all events about them may be dead.
 */
async function assertKnown(db: Knex, places: Config["eventPlaces"], customerId: string): Promise<void> {
  if (await isCustomerKnown(db, customerId)) return;
  if ((await readBodies(db, places, customerId)).isNamed) return;
  throw new UsageError(
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

/** Facts with which a person checks that this is the right customer. */
export interface CustomerSummary {
  id: string;
  /** Null if the mirror has no row of the customer. */
  person: { email: string | null; first_name: string | null; last_name: string | null } | null;
  orders: number;
  lastOrder: {
    order_number: string | null;
    created_at: Date | null;
    total: string | null;
    currency: string | null;
    status: string | null;
  } | null;
  erasedAt: Date | null;
}

export async function summarizeCustomer(db: Knex, id: string): Promise<CustomerSummary> {
  const orders = db("mirror.orders").where({ customer_id: id });
  const [person, count, lastOrder, erased] = await Promise.all([
    db("mirror.customers")
      .where({ id })
      .first<NonNullable<CustomerSummary["person"]> | undefined>("email", "first_name", "last_name"),
    orders.clone().count<{ count: string }[]>(),
    orders
      .clone()
      .orderByRaw("created_at desc nulls last, id")
      .first<NonNullable<CustomerSummary["lastOrder"]> | undefined>(
        "order_number",
        "created_at",
        "total",
        "currency",
        "status",
      ),
    db("mirror.erasures").where({ customer_id: id }).first<{ last_at: Date } | undefined>("last_at"),
  ]);
  return {
    id,
    person: person ?? null,
    orders: Number(count[0]?.count),
    lastOrder: lastOrder ?? null,
    erasedAt: erased?.last_at ?? null,
  };
}

/** Shows names as initials and masks the address, so that the text may stay on a screen. Pure. */
export function summaryText({ id, person, orders, lastOrder, erasedAt }: CustomerSummary, timeZone: string): string {
  const day = (at: Date): string => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone }).format(at);
  const known = (text: string | null): string | null => (text === null || text === redacted ? null : text);
  const initials = [person?.first_name, person?.last_name]
    .flatMap(
      (name) =>
        known(name ?? null)
          ?.trim()
          .match(/^./u)?.[0] ?? [],
    )
    .map((letter) => `${letter}.`)
    .join(" ");
  const email = known(person?.email ?? null);
  const last =
    lastOrder === null
      ? null
      : [
          lastOrder.order_number ?? "without a number",
          ...(lastOrder.created_at === null ? [] : [`of ${day(lastOrder.created_at)}`]),
          ...(lastOrder.total === null ? [] : [moneyText(lastOrder.total, lastOrder.currency)]),
          lastOrder.status ?? "",
        ].join(", ");
  const rows: [string, string][] = [
    ["Customer", id],
    ["Name", person === null ? "not in the mirror" : initials || "none"],
    ["E-mail", person === null ? "not in the mirror" : email === null ? "none" : maskedEmail(email)],
    ["Orders", String(orders)],
    ...(last === null ? [] : [["Last order", last] as [string, string]]),
    ...(erasedAt === null ? [] : [["Erased before", day(erasedAt)] as [string, string]]),
  ];
  return rows.map(([label, value]) => `  ${label.padEnd(14)}${withoutControls(value)}\n`).join("");
}
