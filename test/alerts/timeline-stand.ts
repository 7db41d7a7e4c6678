import type { Knex } from "knex";
import type { AlertContext } from "../../src/parts/alerts/alert-context.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import type { Json, TestSandbox } from "../sandbox/harness.ts";
import { toldTo } from "./test-alert-context.ts";
import { applyDeps } from "../worker/worker-stand.ts";

/** The events of everything that happened at the service, oldest first, as they are sent. */
export async function eventsSoFar(sandbox: TestSandbox): Promise<Json[]> {
  const { data } = await sandbox.control("GET", "/events?limit=50000");
  return data as Json[];
}

export const advance = (sandbox: TestSandbox, days: number): Promise<Json> =>
  sandbox.control("POST", "/clock", { advance_seconds: Math.round(days * 86_400) });

/** Marks what is due as sent, as a sender that keeps up would. */
export async function sendDue(db: Knex): Promise<void> {
  await db("alerts.outbox")
    .where("state", "pending")
    .where("due_at", "<=", db.fn.now())
    .update({ state: "sent", attempts: 1, sent_at: db.fn.now() });
}

/** Puts bodies into the inbox as new, with one statement; gives back their numbers in order. */
export async function storeBodies(db: Knex, bodies: readonly string[]): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `with stored as (
       insert into inbox.receipts (event_id, raw_sha256, type, raw, secret_id, event_created_at)
       select body::jsonb->>'id', sha256(convert_to(body, 'UTF8')), body::jsonb->>'type', convert_to(body, 'UTF8'), 'env-1',
         (body::jsonb->>'created_at')::timestamptz
       from unnest(?::text[]) with ordinality as each(body, n) order by n returning seq
     )
     insert into inbox.progress (seq) select seq from stored returning seq`,
    [bodies as string[]],
  );
  return rows.map(({ seq }) => Number(seq)).sort((a, b) => a - b);
}

/** Stores the events and applies them as a worker does, in these batches; after each one, messages are sent. */
export async function deliver(
  db: Knex,
  alertContext: AlertContext,
  batches: readonly (readonly Json[])[],
): Promise<void> {
  for (const batch of batches) {
    const seqs = await storeBodies(
      db,
      batch.map((event) => JSON.stringify({ ...event, id: `${event.id}/${crypto.randomUUID()}` })),
    );
    await applyBatch({ ...applyDeps(db), ...toldTo(alertContext) }, seqs);
    await sendDue(db);
  }
}

export const oneByOne = (events: readonly Json[]): Json[][] => events.map((event) => [event]);

/** What would have been sent, in the order of sending: `trigger attempt:1`, … */
export async function messagesOf(db: Knex, key: string, channel = "log"): Promise<string[]> {
  const rows = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .where({ "a.key": key, "o.channel": channel })
    .whereNot("o.state", "dropped")
    .orderBy("o.id")
    .select<{ action: string; stage: string }[]>("o.action", "o.stage");
  return rows.map(({ action, stage }) => `${action} ${stage}`);
}

/** The rows of alerts without what says how and when they were learned. */
export const alertRows = (db: Knex): Promise<Json[]> =>
  db("alerts.alerts")
    .orderBy(["key", "occurrence"])
    .select(
      "key",
      "occurrence",
      "rule",
      "severity",
      "state",
      "stage",
      "order_id",
      "subscription_id",
      "transaction_id",
      "customer_id",
      "amount_minor",
      "currency",
      "opened_at",
      "updated_at",
      "resolved_at",
      "facts",
    );

/** An alert's life as its history tells it: `opened attempt:1`, … */
export async function lifeOf(db: Knex, key: string): Promise<string[]> {
  const rows = await db("alerts.history as h")
    .join("alerts.alerts as a", "a.id", "h.alert_id")
    .where("a.key", key)
    .orderBy(["h.at", "h.id"])
    .select<{ change: string; stage: string }[]>("h.change", "h.stage");
  return rows.map(({ change, stage }) => `${change} ${stage}`);
}

/** Whether the one is what is left of the other when some are taken out. */
export function isPartOf(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const each of part) {
    at = whole.indexOf(each, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
