import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { GroupState, ObjectKey } from "./snapshot.ts";

/**
 * Notes the objects of states that are dated in the future, each once, with the amount that it shows. Needs the
 * transaction that keeps the states; idempotent. One statement.
 */
export async function noteMisdated(trx: Knex.Transaction, states: readonly GroupState[]): Promise<void> {
  const objects = new Map<string, { object: ObjectKey; at: string; money: Money }>();
  for (const { confirmedBy: object, group, updatedAt, columns } of states) {
    if (object === null) continue;
    const key = `${object.resource}|${object.id}`;
    const known = objects.get(key);
    const money = group === object.resource ? moneyIn(columns) : (known?.money ?? unknownMoney);
    const at = known === undefined || updatedAt > known.at ? updatedAt : known.at;
    objects.set(key, { object, at, money });
  }
  const rows = [...objects.values()].sort((a, b) => (a.object.id < b.object.id ? -1 : 1));
  if (rows.length === 0) return;
  await trx.raw(
    `insert into mirror.misdated as m (resource, id, dated_at, amount, currency)
     select * from unnest(?::text[], ?::text[], ?::timestamptz[], ?::bigint[], ?::text[])
     on conflict (resource, id) do update
     set dated_at = greatest(m.dated_at, excluded.dated_at), amount = coalesce(excluded.amount, m.amount),
         currency = coalesce(excluded.currency, m.currency)`,
    [
      sqlArray(rows.map(({ object }) => object.resource)),
      sqlArray(rows.map(({ object }) => object.id)),
      sqlArray(rows.map(({ at }) => at)),
      sqlArray(rows.map(({ money }) => money.amount)),
      sqlArray(rows.map(({ money }) => money.currency)),
    ],
  );
}

interface Money {
  amount: number | null;
  currency: string | null;
}

const unknownMoney: Money = { amount: null, currency: null };

function moneyIn({ total, amount = total, currency }: GroupState["columns"]): Money {
  return {
    amount: typeof amount === "number" ? amount : null,
    currency: typeof currency === "string" ? currency : null,
  };
}

/** Forgets the objects that a read has shown as of a time that can be. Needs the transaction that writes them. */
export async function settleMisdated(trx: Knex.Transaction, states: readonly GroupState[]): Promise<void> {
  const ids = states.flatMap(({ id, observedAt }) => (observedAt === null ? [] : [id]));
  if (ids.length === 0) return;
  await trx("mirror.misdated")
    .whereRaw("id = any(?::text[])", [sqlArray(ids)])
    .delete();
}

/** The objects that wait for a read that is not dated in the future. */
export interface MisdatedObjects {
  objects: number;
  /** Minor units by currency; without those whose amount or currency is not known. */
  amounts: readonly { currency: string; amountMinor: number }[];
  /** The object that has waited longest. */
  example: ObjectKey & { datedAt: Date };
}

/** Null where there are none. One statement. */
export async function findMisdated(db: Knex): Promise<MisdatedObjects | null> {
  const { rows } = await db.raw<{
    rows: {
      objects: string;
      amounts: Record<string, number> | null;
      resource: string;
      id: string;
      dated_at: Date;
    }[];
  }>(
    `select (select count(*) from mirror.misdated) as objects, (
         select jsonb_object_agg(s.currency, s.amount) from (
           select m.currency, sum(abs(m.amount)) as amount from mirror.misdated m
           where m.amount is not null and m.currency is not null group by m.currency) s) as amounts,
       first.resource, first.id, first.dated_at
     from mirror.misdated first order by first.noted_at, first.resource, first.id limit 1`,
  );
  const [row] = rows;
  if (row === undefined) return null;
  return {
    objects: Number(row.objects),
    amounts: Object.entries(row.amounts ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([currency, amountMinor]) => ({ currency, amountMinor })),
    example: { resource: row.resource as ObjectKey["resource"], id: row.id, datedAt: row.dated_at },
  };
}

/** Objects that wait, in the order of resource and id: the `limit` after `after`, and those that waited at `until`. */
export async function listMisdated(
  db: Knex,
  { after, limit, until }: { after: ObjectKey | null; limit: number; until: Date },
): Promise<ObjectKey[]> {
  const query = db("mirror.misdated").where("noted_at", "<=", until).orderBy(["resource", "id"]).limit(limit);
  if (after !== null) void query.whereRaw("(resource, id) > (?, ?)", [after.resource, after.id]);
  return query.select<ObjectKey[]>("resource", "id");
}

/** Forgets an object that no read can show. Its states stay in `mirror.unbelieved`. Idempotent. One statement. */
export async function giveUpMisdated(trx: Knex.Transaction, { resource, id }: ObjectKey): Promise<void> {
  await trx("mirror.misdated").where({ resource, id }).delete();
}

const forgottenAtOnce = 5_000;

/**
 * Removes old states that were dated in the future (chosen by `mirror.forget_unbelieved`). One statement a batch, each
 * a transaction of its own; idempotent. Returns the number of rows.
 */
export async function forgetUnbelieved(db: Knex, stopping?: AbortSignal): Promise<number> {
  for (let forgotten = 0; ;) {
    const { rows } = await db.raw<{ rows: [{ n: number }] }>("select mirror.forget_unbelieved(?) as n", [
      forgottenAtOnce,
    ]);
    forgotten += rows[0].n;
    if (rows[0].n < forgottenAtOnce || stopping?.aborted === true) return forgotten;
  }
}

/**
 * Takes objects whose next read was last ordered an hour ago or longer: the longest ago first, at most `limit`. Belongs
 * in the transaction that orders the reads.
 */
export async function takeMisdated(trx: Knex.Transaction, { limit }: { limit: number }): Promise<ObjectKey[]> {
  const { rows } = await trx.raw<{ rows: ObjectKey[] }>(
    `update mirror.misdated m set ordered_at = now()
     from (select resource, id from mirror.misdated where ordered_at < now() - interval '55 minutes'
           order by ordered_at limit ? for update skip locked) due
     where m.resource = due.resource and m.id = due.id returning m.resource, m.id`,
    [limit],
  );
  return rows;
}
