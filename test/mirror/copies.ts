import type { Knex } from "knex";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import type { Snapshot, ObjectKey } from "../../src/core/mirror/snapshot.ts";
import type { Random } from "../../src/platform/random.ts";
import { type Delivery, type History, copyMark } from "./shop-history.ts";
import { emptyTables } from "../support/empty-tables.ts";

/** One order of arrival: which delivery comes when, and in which batch. */
export interface Arrival {
  delivery: number;
  batch: number;
}

const copiesAtOnce = 240;

/**
 * Applies many orders of arrival of one history at once: every one is a copy with ids of its own, and the n-th
 * batches of some hundred copies are one transaction. Gives back, for each copy, the objects that were to be read.
 */
export async function deliverCopies(
  db: Knex,
  history: History,
  arrivals: readonly (readonly Arrival[])[],
): Promise<ObjectKey[][]> {
  const bodies = history.deliveries.map(({ object }) => JSON.stringify(object));
  const wanted: ObjectKey[][] = arrivals.map(() => []);
  const groups: number[][] = [];
  arrivals.forEach((_, copy) => (groups[Math.floor(copy / copiesAtOnce)] ??= []).push(copy));
  await atOnce(2, groups, async (copies) => {
    const last = Math.max(...copies.flatMap((copy) => arrivals[copy]!.map(({ batch }) => batch)));
    for (let batch = 0; batch <= last; batch++) {
      const due = copies.flatMap((copy) =>
        arrivals[copy]!.filter((arrival) => arrival.batch === batch).map(({ delivery }) => {
          const of = history.deliveries[delivery]!;
          return observationOf({ ...of, object: inCopy(bodies[delivery]!, copy) }, `event:${delivery + 1}`);
        }),
      );
      for (const { resource, id } of await applyAll(db, due)) {
        const { copy, base } = splitId(id);
        wanted[copy]!.push({ resource, id: base });
      }
    }
  });
  return wanted.map(distinct);
}

/** Makes the reads that were wanted, after everything else. */
export async function settleCopies(
  db: Knex,
  history: History,
  wanted: readonly (readonly ObjectKey[])[],
): Promise<void> {
  const reads = wanted.flatMap((objects, copy) =>
    objects.map(({ resource, id }) => {
      const read = history.lastRead(resource, id);
      return observationOf({ ...read, object: inCopy(JSON.stringify(read.object), copy) }, "fetch");
    }),
  );
  const groups: Snapshot[][] = [];
  reads.forEach((read, n) => (groups[Math.floor(n / 1_000)] ??= []).push(read));
  await atOnce(2, groups, async (group) => {
    const more = await applyAll(db, group);
    if (more.length > 0) throw new Error(`a settling read asks for ${JSON.stringify(more[0])}`);
  });
}

/** Applies a batch and gives back what is to be read: what is thin, tied, or embedded without its state. */
async function applyAll(db: Knex, batch: readonly Snapshot[]): Promise<ObjectKey[]> {
  const { outcomes, ties, unread } = await db.transaction((trx) => applySnapshots(trx, batch));
  const thin = outcomes.flatMap((outcome, n) => {
    if (outcome.outcome === "unreadable") throw new Error(outcome.reason);
    return outcome.outcome === "partial" ? [{ resource: batch[n]!.resource, id: outcome.id }] : [];
  });
  return [...thin, ...ties, ...unread].map(({ resource, id }) => ({ resource, id }));
}

/** `cause`: one of its own for each delivery, as events have: blame finds by it the order that showed an entry. */
const observationOf = (delivery: Delivery, cause: string): Snapshot => ({ ...delivery, cause });

const inCopy = (body: string, copy: number): Record<string, unknown> =>
  JSON.parse(body.replaceAll(copyMark, `~${copy}`)) as Record<string, unknown>;

function splitId(id: string): { copy: number; base: string } {
  const [base = "", copy = ""] = id.split("~");
  return { copy: Number(copy), base: base + copyMark };
}

const distinct = (objects: readonly ObjectKey[]): ObjectKey[] => [
  ...new Map(objects.map((object) => [`${object.resource}|${object.id}`, object])).values(),
];

async function atOnce<T>(lanes: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

/** Who showed a state first: an event or a read, whichever came first. */
const ofTheFirst = ["last_cause", "seq", "recorded_at", "observed_at", "cause", "absent_fields"];

/** Columns that are not the same in copies: their content holds the copy's ids. */
const bookkeeping = [
  "version",
  "inline_version",
  "dunning_version",
  "items_version",
  "detail_version",
  "absent_version",
  "content_hash",
  ...ofTheFirst,
];

/** With the column that names the object. */
const tables = {
  orders: "id",
  transactions: "id",
  subscriptions: "id",
  customers: "id",
  chargebacks: "key",
  versions: "id",
};

export interface SharedRow {
  table: string;
  row: Record<string, unknown>;
  /** How many copies have it. */
  copies: number;
}

/** Every distinct row of the mirror, ids without their copy, with the number of copies that have it. */
export async function sharedRows(db: Knex): Promise<SharedRow[]> {
  const { rows } = await db.raw<{ rows: { name: string; row: string; copies: string }[] }>(
    Object.entries(tables)
      .map(
        // All ids of a row are of one copy.
        ([table, id]) => `
          select '${table}' as name,
                 replace((to_jsonb(t) - ?::text[])::text, '~' || split_part(t.${id}, '~', 2), '${copyMark}') as row,
                 count(*) as copies
          from mirror.${table} t group by 2`,
      )
      .join(" union all "),
    Object.keys(tables).map(() => bookkeeping),
  );
  const facts = await sharedFacts(db);
  return [...rows, ...facts].map(({ name, row, copies }) => ({
    table: name,
    row: JSON.parse(row) as Record<string, unknown>,
    copies: Number(copies),
  }));
}

/**
 * What the feed has told of refunds and disputes, in the same form. A dispute that was opened again is told again:
 * its n-th time is a row of its own, so what one copy tells once more than another stands out.
 */
async function sharedFacts(db: Knex): Promise<{ name: string; row: string; copies: string }[]> {
  const { rows } = await db.raw<{ rows: { row: string; copies: string }[] }>(
    `select replace(jsonb_build_object('id', id, 'kind', kind, 'transaction_id', transaction_id, 'amount', amount,
                      'time', nth)::text,
                    '~' || split_part(id, '~', 2), ?) as row, count(*) as copies
     from (
       select *, row_number() over (partition by id, kind, transaction_id order by seq) as nth from feed.changes
     ) told
     where kind in ('order.refunded', 'order.disputed', 'order.dispute_won', 'order.dispute_lost')
     group by 1`,
    [copyMark],
  );
  return rows.map((row) => ({ name: "facts", ...row }));
}

/** The whole mirror in one text, as one order of arrival leaves it; nothing of it stays. */
export async function mirrorAfter(db: Knex, history: History, arrivals: readonly Arrival[]): Promise<string> {
  const trx = await db.transaction();
  try {
    for (let batch = 0; batch <= (arrivals.at(-1)?.batch ?? 0); batch++) {
      const due = arrivals.filter((arrival) => arrival.batch === batch);
      await applySnapshots(
        trx,
        due.map(({ delivery }) => observationOf(history.deliveries[delivery]!, `event:${delivery + 1}`)),
      );
    }
    const { rows } = await trx.raw<{ rows: { mirror: string }[] }>(
      `select jsonb_object_agg(name, found)::text as mirror from (${Object.keys(tables)
        .map(
          (table) => `
            select '${table}' as name, (
              select jsonb_agg(row order by row) from (
                select to_jsonb(t) - ?::text[] as row from mirror.${table} t) all_rows) as found`,
        )
        .join(" union all ")}) as tables`,
      Object.keys(tables).map(() => ofTheFirst),
    );
    return rows[0]?.mirror ?? "";
  } finally {
    await trx.rollback();
  }
}

export async function emptyMirror(db: Knex): Promise<void> {
  await emptyTables(db, [
    "mirror.orders",
    "mirror.transactions",
    "mirror.subscriptions",
    "mirror.customers",
    "mirror.versions",
    "mirror.misdated",
    "feed.changes",
    "feed.facts",
  ]);
}

/** What such a test writes need not outlive a crash of the server. */
export async function withoutLog(db: Knex): Promise<void> {
  await db.raw(
    [
      ...["orders", "transactions", "subscriptions", "customers", "versions"].map((name) => `mirror.${name}`),
      ...["facts", "changes_1"].map((name) => `feed.${name}`),
    ]
      .map((table) => `alter table ${table} set unlogged`)
      .join("; "),
  );
}

/** Splits an order of arrival into batches, each time with even odds. */
export function inBatches(random: Random, deliveries: readonly number[]): Arrival[] {
  let batch = 0;
  return deliveries.map((delivery, n) => {
    if (n > 0 && random() < 0.5) batch++;
    return { delivery, batch };
  });
}
