import type { Command } from "commander";
import type { Knex } from "knex";
import { redactMessages } from "../alerts/redact-messages.ts";
import { rewriteBodies } from "../inbox/rewrite-bodies.ts";
import type { Config } from "../config.ts";
import { contactsOf, eraseHistory, objectsOf } from "../mirror/erasure/erase-history.ts";
import { erasedContactsAmong } from "../mirror/erasure/erased-people.ts";
import { eraseRows } from "../mirror/erasure/erase-rows.ts";
import { logErasure } from "../mirror/erasure/erasure-log.ts";
import { markErased } from "../mirror/erasure/mark-erased.ts";
import { arrivalOf, redactedArrival } from "../mirror/erasure/redact-arrivals.ts";
import { UsageError } from "../platform/errors.ts";
import { sqlArray } from "../platform/sql-array.ts";
import { visible } from "../platform/visible-text.ts";
import { redactFindings } from "../reconcile/redact-findings.ts";
import { migratedDatabase } from "../runtime.ts";
import { parsePerson, personAtWork } from "./acting-person.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";

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
      "redact one person for good in mirror, history, stored events, findings and alerts, after asking",
    )
    .argument("<id>", "the customer's id")
    .option(
      "--by <name>",
      "who asks for it, for the record (default: this system's user)",
      parsePerson,
    )
    .option("--reason <text>", "why, for the record")
    .option("--yes", "do not ask")
    .option("--json", "print JSON")
    .action((id: string, options: EraseOptions) => erase(context, id, options));
}

async function erase(context: CliContext, id: string, options: EraseOptions): Promise<void> {
  const { reason = null, yes, json } = options;
  if (yes !== true) assertCanAsk(context);
  const by = options.by ?? personAtWork();
  if (yes !== true) {
    await confirm(
      context,
      `Redact everything that tells who the customer ${visible(id)} is? It cannot be undone.`,
    );
  }
  const erased = await context.withRuntime(
    "customers",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      return eraseCustomer(db, runtime.config.eventPlaces, { customerId: id, by, reason });
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
      ? "tallyhook: the service still shows this customer. Delete it there, too; what it shows is redacted when it arrives.\n"
      : "",
  );
}

interface Erased {
  customerId: string;
  counts: Record<string, number>;
  /** As far as the mirror knows, the service still has the customer. */
  atService: boolean;
}

/**
 * Erases one person everywhere. What comes later is redacted when it arrives, so that neither an event, a replay nor
 * the nightly run brings it back. Idempotent; a run after a crash does the rest. Throws `UsageError` for nobody.
 */
async function eraseCustomer(
  db: Knex,
  places: Config["eventPlaces"],
  { customerId, by, reason }: { customerId: string; by: string; reason: string | null },
): Promise<Erased> {
  if (!(await markErased(db, customerId))) {
    throw new UsageError(`The mirror knows no customer ${customerId}. Nothing was changed.`);
  }
  const ids = await objectsOf(db, customerId);
  const numbers = await db("mirror.orders")
    .whereRaw("id = any(?::text[]) and order_number is not null", [sqlArray(ids)])
    .pluck<string[]>("order_number");
  // First what is found by the addresses: after a crash the rows must still tell them.
  const events = await eraseBodies(db, places, customerId, ids);
  const { rows, history } = await db.transaction(async (trx) => {
    const { states, hashes } = await eraseHistory(trx, customerId, ids);
    return { rows: await eraseRows(trx, customerId, ids, hashes), history: states };
  });
  const counts = {
    ...rows,
    history,
    events,
    findings: await redactFindings(db, ids),
    ...(await redactMessages(db, { customerId, ids, names: numbers })),
  };
  await logErasure(db, { customerId, by, reason, counts });
  const live = await db("mirror.customers")
    .where({ id: customerId })
    .whereNull("deleted_at")
    .first<{ id: string } | undefined>("id");
  return { customerId, counts, atService: live !== undefined };
}

/** How many stored events changed. */
async function eraseBodies(
  db: Knex,
  places: Config["eventPlaces"],
  customerId: string,
  ids: readonly string[],
): Promise<number> {
  const known = await contactsOf(db, customerId);
  const contacts = await erasedContactsAmong(db, known);
  const people = { customers: new Set([customerId]), objects: new Set(ids), contacts };
  const wanted = { customerId, objects: ids, contacts: [...contacts] };
  return rewriteBodies(db, wanted, (raw) => {
    const left = redactedArrival(places, arrivalOf(raw), people);
    return left === null ? raw : left.raw;
  });
}
