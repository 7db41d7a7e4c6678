import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Model } from "./history.ts";
import type { Acknowledged } from "./sender.ts";

/** Every list is empty when nothing went wrong; each entry names what it is about. */
export interface Audit {
  /** Acknowledged and not in the inbox: a broken promise. */
  missing: string[];
  /** Acknowledged and in the inbox more than once, or with other bytes. */
  altered: string[];
  /** In the inbox and never sent. */
  strange: string[];
  /** Not applied or stale, or worked on more than once. */
  unsettled: string[];
  /** Acknowledged, with not exactly one state in the history that came from it. */
  unrecorded: string[];
  /** Rows of the mirror that are not the model's last state. */
  different: string[];
  /** Reads of the service that were ordered though no event called for one. */
  fetches: string[];
}

export const faultless: Audit = {
  missing: [],
  altered: [],
  strange: [],
  unsettled: [],
  unrecorded: [],
  different: [],
  fetches: [],
};

interface InboxRow {
  event_id: string;
  sha256: string;
  is_whole: boolean;
  state: string;
  attempts: number;
  versions: number;
  version_matches: boolean;
}

/**
 * Compares the database with what the sender knows: all that was acknowledged is stored once and applied once, and
 * the mirror equals the model. All taken events must be acknowledged and all stored ones settled.
 */
export async function audit(db: Knex, acknowledged: ReadonlyMap<string, Acknowledged>, model: Model): Promise<Audit> {
  const found: Audit = structuredClone(faultless);
  const copies = new Map<string, number>();
  for (const row of await inboxRows(db)) {
    const { event_id: id } = row;
    copies.set(id, (copies.get(id) ?? 0) + 1);
    const sent = acknowledged.get(id);
    if (sent === undefined) {
      found.strange.push(id);
      continue;
    }
    if (row.sha256 !== sent.sha256 || !row.is_whole) found.altered.push(`${id}: other bytes`);
    const isSettled = row.state === "applied" || row.state === "stale";
    if (!isSettled || row.attempts !== 1) {
      found.unsettled.push(`${id}: ${row.state} after ${row.attempts} attempts`);
    }
    if (row.versions !== 1 || !row.version_matches) {
      found.unrecorded.push(`${id}: ${row.versions} states of ${sent.resource} ${sent.objectId}`);
    }
  }
  for (const id of acknowledged.keys()) {
    const count = copies.get(id) ?? 0;
    if (count === 0) found.missing.push(id);
    if (count > 1) found.altered.push(`${id}: ${count} rows`);
  }
  found.different = await differences(db, model);
  found.fetches = (await db("inbox.fetches").select("resource", "id")).map(
    ({ resource, id }: { resource: string; id: string }) => `${resource} ${id}`,
  );
  return found;
}

/** What is in the inbox, each row with the states of the history that name it as their cause. */
async function inboxRows(db: Knex): Promise<InboxRow[]> {
  const { rows } = await db.raw<{ rows: InboxRow[] }>(
    `select e.event_id, encode(e.raw_sha256, 'hex') as sha256, sha256(e.raw) = e.raw_sha256 as is_whole,
            e.state, e.attempts, coalesce(v.versions, 0) as versions,
            v.id = b.object->>'id' and v.at = (b.object->>'updated_at')::timestamptz as version_matches
     from inbox.events e
       cross join lateral (select convert_from(e.raw, 'UTF8')::jsonb->'data'->'object' as object) b
       left join (
         select cause, count(*)::int as versions, min(id) as id, min(source_updated_at) as at
         from mirror.versions where resource in ('order', 'subscription', 'customer') group by cause
       ) v on v.cause = 'event:' || e.seq`,
  );
  return rows;
}

type Rows = Map<string, Record<string, unknown>>;

async function differences(db: Knex, model: Model): Promise<string[]> {
  const orders: Rows = new Map();
  const transactions: Rows = new Map();
  for (const order of model.orders.values()) {
    const { id, items: _items, transactions: inline, ...data } = order;
    orders.set(id, {
      status: order.status,
      total: String(order.total),
      attempt_count: model.attempts.get(id) ?? null,
      data: { id, ...data },
    });
    for (const { id: transactionId, status, amount, type } of inline) {
      transactions.set(transactionId, { status, type, amount: String(amount), order_id: id });
    }
  }
  const subscriptions: Rows = new Map(
    [...model.subscriptions].map(([id, data]) => [id, { status: data.status, data }]),
  );
  const customers: Rows = new Map([...model.customers].map(([id, data]) => [id, { email: data.email, data }]));
  const chargebacks: Rows = new Map(
    [...model.chargebacks].map(([id, { state, amount }]) => [id, { state, amount: `${amount}` }]),
  );
  const compared = await Promise.all([
    compare(db, "orders", "id", orders),
    compare(db, "transactions", "id", transactions),
    compare(db, "subscriptions", "id", subscriptions),
    compare(db, "customers", "id", customers),
    compare(db, "chargebacks", "key", chargebacks),
  ]);
  return compared.flat();
}

async function compare(db: Knex, table: string, key: string, expected: Rows): Promise<string[]> {
  const [sample] = expected.values();
  const columns = Object.keys(sample ?? {});
  const rows: Record<string, unknown>[] = await db(`mirror.${table}`).select(key, ...columns);
  const found: string[] = [];
  const seen = new Set<string>();
  for (const { [key]: id, ...row } of rows) {
    const wanted = expected.get(String(id));
    seen.add(String(id));
    if (!isDeepStrictEqual(row, wanted)) {
      found.push(`${table} ${String(id)}: ${JSON.stringify(row)}, not ${JSON.stringify(wanted)}`);
    }
  }
  for (const id of expected.keys()) if (!seen.has(id)) found.push(`${table} ${id} is missing`);
  return found;
}
