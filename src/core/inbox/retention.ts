import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { EventState } from "./claim.ts";
import type { EventRow } from "./queries.ts";

/** The events among these whose bytes were pruned, so they can no longer be applied. One statement. */
export async function listPruned(db: Knex, seqs: readonly number[]): Promise<{ seq: number; eventId: string }[]> {
  const { rows } = await db.raw<{ rows: { seq: string; event_id: string }[] }>(
    "select seq, event_id from inbox.receipts where seq = any(?::bigint[]) and raw is null order by seq",
    [sqlArray(seqs)],
  );
  return rows.map(({ seq, event_id: eventId }) => ({ seq: Number(seq), eventId }));
}

/** An event as shown to a person who decides on its replay. */
export type ReplayedEvent = Pick<EventRow, "seq" | "state" | "attempts">;

/**
 * Sets events back to `received`, so that they are applied again on the normal path. Affects only rows whose bytes are
 * still stored, and waits for a prune in progress. Returns their sequence numbers. Idempotent: applying an event twice
 * changes nothing. Opens a transaction, or a savepoint in an open one. `check` is shown the locked events, ascending,
 * and may throw: then nothing is changed.
 */
export async function replayEvents(
  db: Knex,
  seqs: readonly number[],
  check?: (now: ReplayedEvent[]) => void,
): Promise<number[]> {
  return db.transaction(async (trx) => {
    const locked = await lockProgress(trx, seqs);
    check?.(locked);
    // A transaction that changes bytes has locked the progress first.
    const { rows: kept } = await trx.raw<{ rows: { seq: string }[] }>(
      "select seq from inbox.receipts where seq = any(?::bigint[]) and raw is not null order by seq",
      [sqlArray(seqs)],
    );
    const { rows } = await trx.raw<{ rows: { seq: string }[] }>(
      `update inbox.progress
       set state = 'received', attempts = 0, next_attempt_at = null, reason = null, settled_at = null
       where seq = any(?::bigint[]) returning seq`,
      [sqlArray(kept.map(({ seq }) => seq))],
    );
    return rows.map(({ seq }) => Number(seq)).sort((a, b) => a - b);
  });
}

/**
 * Locks the progress before the receipts, as a worker does. Statements of their own: PostgreSQL 18 crashes now and then
 * where one statement locks rows and chooses their partitions row by row as well.
 */
async function lockProgress(trx: Knex.Transaction, seqs: readonly (number | string)[]): Promise<ReplayedEvent[]> {
  const { rows } = await trx.raw<{
    rows: { seq: string; state: EventState; attempts: number }[];
  }>("select seq, state, attempts from inbox.progress where seq = any(?::bigint[]) order by seq for update", [
    sqlArray(seqs),
  ]);
  return rows.map(({ seq, ...row }) => ({ seq: Number(seq), ...row }));
}

/**
 * Prunes the bytes of up to `limit` applied, stale or ignored events received more than `days` ago, and returns their
 * number: 0 when all that are left are locked. The rows stay, so that replayed deliveries are still recognised. Never
 * prunes an event that is not completed, or that is about to be replayed. Opens its own transaction.
 */
export async function pruneEvents(db: Knex, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.transaction(async (trx) => {
    const { rows: old } = await trx.raw<{ rows: { seq: string }[] }>(
      `select r.seq from inbox.receipts r join inbox.progress p using (seq)
       where r.received_at < now() - make_interval(days => ?) and r.raw is not null
         and p.state in ('applied', 'stale', 'ignored')
       order by r.seq limit ?`,
      [days, limit],
    );
    const { rows: completed } = await trx.raw<{ rows: { seq: string }[] }>(
      `select seq from inbox.progress
       where seq = any(?::bigint[]) and state in ('applied', 'stale', 'ignored') order by seq for update skip locked`,
      [sqlArray(old.map(({ seq }) => seq))],
    );
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      "update inbox.receipts set raw = null where seq = any(?::bigint[]) and raw is not null",
      [sqlArray(completed.map(({ seq }) => seq))],
    );
    return rowCount;
  });
}

/** The number of events that `pruneEvents` would prune in all. */
export async function countPrunable(db: Knex, days: number): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from inbox.receipts r join inbox.progress p using (seq)
     where r.received_at < now() - make_interval(days => ?) and r.raw is not null
       and p.state in ('applied', 'stale', 'ignored')`,
    [days],
  );
  return Number(rows[0]?.n ?? 0);
}

const batchSize = 200;

/** Fields that identify the events that may concern one person. */
export interface BodySearch {
  customerId: string;
  /** Ids of the person's objects. These and the contacts are searched for in events that name no customer. */
  objects: readonly string[];
  /** E-mail addresses and phone numbers, found in any case and with separators between digits. */
  contacts: readonly string[];
}

/** The beginning of a JSON escape. It may encode any character, so a body that contains one always matches. */
const escapeMark = "\\u";

/**
 * Visits every event that may contain the customer's id or concerned the customer, with its stored bytes, or null when
 * they were pruned. Reads the whole inbox.
 */
export async function visitEventsOfCustomer(
  db: Knex,
  customerId: string,
  visit: (seq: number, raw: Buffer | null) => void,
): Promise<void> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select r.seq from inbox.receipts r
     where position(convert_to(:customerId, 'UTF8') in r.raw) > 0
       or position(convert_to(:escape, 'UTF8') in r.raw) > 0
     union
     select seq from inbox.progress where resource_id = :customerId order by seq`,
    { customerId, escape: escapeMark },
  );
  for (let from = 0; from < rows.length; from += batchSize) {
    const bodies = await db<{ seq: string; raw: Buffer | null }>("inbox.receipts")
      .whereIn(
        "seq",
        rows.slice(from, from + batchSize).map(({ seq }) => seq),
      )
      .orderBy("seq")
      .select("seq", "raw");
    for (const { seq, raw } of bodies) visit(Number(seq), raw);
  }
}

/**
 * Rewrites the stored bytes of every event that may concern a person, and returns how many changed. Used to erase a
 * person. `rewrite` returns the new bytes, the identical Buffer when the event concerns someone else, or null to prune
 * the bytes. An event that is pruned before it was applied is dead. Reads the whole inbox. Commits in batches, so a
 * repeat after a crash resumes. Idempotent.
 */
export async function rewriteBodies(
  db: Knex,
  { customerId, objects, contacts }: BodySearch,
  rewrite: (raw: Buffer) => Buffer | null,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select r.seq from inbox.receipts r
     where r.raw is not null
       and (position(convert_to(:customerId, 'UTF8') in r.raw) > 0
            or position(convert_to(:escape, 'UTF8') in r.raw) > 0
            -- Most events name a customer, and a search for many texts is ten times as slow as for one.
            or ((position('"customer_id"'::bytea in r.raw) = 0 or position('"customer_id":null'::bytea in r.raw) > 0
                 or position('"customer_id": null'::bytea in r.raw) > 0)
                and lower(encode(r.raw, 'escape')) ~ :traces)
            or r.seq in (select seq from inbox.progress where resource_id = any(:objects::text[])))
     -- Events with the person's addresses come last: a repeat after a crash still needs to read them.
     order by position(convert_to(:customerId, 'UTF8') in r.raw) > 0, r.seq`,
    {
      customerId,
      escape: escapeMark,
      traces: [...objects.map(textExpression), ...contacts.map(contactExpression)].join("|"),
      objects: sqlArray(objects),
    },
  );
  let changed = 0;
  for (let from = 0; from < rows.length; from += batchSize) {
    const seqs = rows.slice(from, from + batchSize).map(({ seq }) => seq);
    changed += await db.transaction(async (trx) => {
      await lockProgress(trx, seqs);
      const rewritten = await rewriteBatch(trx, seqs, rewrite);
      await giveUpErased(trx, seqs);
      return rewritten;
    });
  }
  return changed;
}

/** Events without bytes can never be applied; the relay would retry them endlessly. */
async function giveUpErased(trx: Knex.Transaction, seqs: readonly string[]): Promise<void> {
  await trx.raw(
    `update inbox.progress p
     set state = 'dead', reason = 'body: erased before it could be read', next_attempt_at = null, settled_at = now()
     from inbox.receipts r
     where r.seq = p.seq and r.raw is null and p.seq = any(?::bigint[]) and p.state in ('received', 'failed')`,
    [sqlArray(seqs)],
  );
}

/**
 * A PostgreSQL expression for lower-case text. Non-ASCII characters appear as escaped bytes, so any bytes match them.
 */
const textExpression = (text: string): string =>
  text.toLowerCase().replaceAll(/[^a-z0-9@-]/g, (each) => (/[!-~]/.test(each) ? `\\${each}` : ".+"));

/** Allows separators between the digits of a phone number, and URL or HTML escapes in an address. */
const contactExpression = (contact: string): string =>
  /^\+\d+$/.test(contact)
    ? contact.slice(1).split("").join("[ ().-]*")
    : textExpression(contact).replaceAll(/\\?[^a-z0-9.+\\]/g, (sign) => `(?:${sign}|%[2-7][0-9a-f]|&#x?[0-9a-f]+;)`);

/**
 * Rewrites the stored bytes of these events and returns how many changed. An event stays as it is when `rewrite`
 * returns the identical Buffer. Stored bytes change for two reasons only, apart from pruning: a person is erased, or a
 * card number is masked. `raw_sha256` remains the hash of the bytes as received. Locks the rows: needs a transaction.
 */
export async function rewriteBatch(
  trx: Knex.Transaction,
  seqs: readonly string[],
  rewrite: (raw: Buffer, seq: string) => Buffer | null,
): Promise<number> {
  const rows = await trx<{ seq: string; raw: Buffer | null }>("inbox.receipts")
    .whereIn("seq", seqs)
    .orderBy("seq")
    .forUpdate()
    .select("seq", "raw");
  let changed = 0;
  for (const { seq, raw } of rows) {
    const rewritten = raw === null ? null : rewrite(raw, seq);
    if (rewritten === raw) continue;
    changed += await trx("inbox.receipts").where({ seq }).update({ raw: rewritten });
  }
  return changed;
}
