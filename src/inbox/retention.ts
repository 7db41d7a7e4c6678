import type { Knex } from "knex";
import { sqlArray } from "../platform/postgres/values.ts";

/** Of these events those whose bytes are gone: nothing is left of them that could be applied. One statement. */
export async function listPruned(
  db: Knex,
  seqs: readonly number[],
): Promise<{ seq: number; eventId: string }[]> {
  const { rows } = await db.raw<{ rows: { seq: string; event_id: string }[] }>(
    "select seq, event_id from inbox.receipts where seq = any(?::bigint[]) and raw is null order by seq",
    [sqlArray(seqs)],
  );
  return rows.map(({ seq, event_id: eventId }) => ({ seq: Number(seq), eventId }));
}

/**
 * Puts events back to `received`, to be applied again through the same path. Only rows whose bytes are still
 * there: a prune under way is waited for. Gives back their sequence numbers. Idempotent: applying an event twice
 * changes nothing.
 */
export async function replayEvents(db: Knex, seqs: readonly number[]): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `with kept as materialized (
       select seq from inbox.progress p join inbox.receipts r using (seq)
       where seq = any(?::bigint[]) and r.raw is not null order by seq for update of p, r
     )
     update inbox.progress p
     set state = 'received', attempts = 0, next_attempt_at = null, relayed_at = null, reason = null, settled_at = null
     from kept where p.seq = kept.seq returning p.seq`,
    [sqlArray(seqs)],
  );
  return rows.map(({ seq }) => Number(seq));
}

/**
 * Empties the bytes of up to `limit` applied, stale or ignored events received more than `days` ago, and says
 * how many. The rows stay: they are the memory against replays. What is not applied is never touched, nor what is
 * about to be replayed.
 */
export async function pruneEvents(
  db: Knex,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `with old as materialized (
       select r.seq from inbox.receipts r join inbox.progress p using (seq)
       where r.received_at < now() - make_interval(days => ?) and r.raw is not null
         and p.state in ('applied', 'stale', 'ignored')
       order by r.seq limit ? for update of p, r skip locked
     )
     update inbox.receipts r set raw = null from old where r.seq = old.seq`,
    [days, limit],
  );
  return rowCount;
}

/** How many events `pruneEvents` would empty in all. */
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

/** How events that may be about one person are found. */
export interface BodiesOf {
  customerId: string;
  /** What events that name no customer may be about: ids as they are; addresses in whatever capitals and with blanks. */
  objects: readonly string[];
  contacts: readonly string[];
}

/** Characters that are written as their numbers may be any. */
const escapeMark = "\\u";

/**
 * Visits the stored bytes of every event in which the customer's id may stand, or that was about the customer, with
 * null for bytes that are pruned. Reads the whole inbox.
 */
export async function visitBodiesNaming(
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
 * Rewrites the stored bytes of every event that may be about a person, and says how many changed. `rewrite` gives the new
 * bytes, the very same where it is about somebody else, or null to empty them, as a prune does. For the erasure of a
 * person. Reads the whole inbox; commits in batches, so that a run after a crash goes on. Idempotent.
 */
export async function rewriteBodies(
  db: Knex,
  { customerId, objects, contacts }: BodiesOf,
  rewrite: (raw: Buffer) => Buffer | null,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select r.seq from inbox.receipts r
     where r.raw is not null
       and (position(convert_to(:customerId, 'UTF8') in r.raw) > 0
            or position(convert_to(:escape, 'UTF8') in r.raw) > 0
            -- Most events name a customer, and a search for many texts is ten times as slow as one for a single text.
            or ((position('"customer_id"'::bytea in r.raw) = 0 or position('"customer_id":null'::bytea in r.raw) > 0
                 or position('"customer_id": null'::bytea in r.raw) > 0)
                and lower(encode(r.raw, 'escape')) ~ :traces)
            or r.seq in (select seq from inbox.progress where resource_id = any(:objects::text[])))
     -- Last those that tell the person's addresses: after a crash they must still tell them.
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
    changed += await db.transaction((trx) => rewriteBatch(trx, seqs, rewrite));
  }
  return changed;
}

/** For Postgres, of a text in small letters. What is not ASCII stands there as its bytes, and matches whatever they are. */
const textExpression = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9@-]/g, (each) => (/[!-~]/.test(each) ? `\\${each}` : ".+"));

/** Between the digits of a phone number may stand what people put there; an address may be written for a URL or HTML. */
const contactExpression = (contact: string): string =>
  /^\+\d+$/.test(contact)
    ? contact.slice(1).split("").join("[ ().-]*")
    : textExpression(contact).replaceAll(
        /\\?[^a-z0-9.+\\]/g,
        (sign) => `(?:${sign}|%[2-7][0-9a-f]|&#x?[0-9a-f]+;)`,
      );

/**
 * Rewrites the stored bytes of these events, but where `rewrite` gives back the very bytes, and says how many changed. What
 * arrived is changed for two reasons only: a person is erased, or a card number is masked; `raw_sha256` stays that of
 * what arrived. Locks the rows: needs a transaction.
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
