import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import type { CustomerWords } from "../compose-message.ts";
import { moneyText } from "../../platform/money.ts";

/** Either may be missing in the mirror: a sum of what has no currency, or of what has no amount. */
interface Sum {
  currency: string | null;
  amount: string | null;
}

/**
 * Nobody who is being erased is named, from the moment that it begins. Whoever has read this table is waited for before
 * (mirror/erasure/mark-erased.ts), so that no message is written that the erasure does not see.
 */
const isNotErased = "not exists (select from mirror.erasures e where e.customer_id = c.id)";

interface Row {
  id: string;
  email: string | null;
  past_due: Sum[] | null;
  paid: Sum[] | null;
}

/**
 * What a message says of customers, by id: the masked address, what is past due in all, and what was paid in a lifetime
 * (refunds and lost chargebacks taken off). Currencies are never added. One statement.
 */
export async function customerFacts(
  db: Knex,
  ids: readonly string[],
): Promise<Map<string, CustomerWords>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: Row[] }>(
    `select asked.id, c.email,
       (select jsonb_agg(jsonb_build_object('currency', d.currency, 'amount', d.amount::text) order by d.currency)
        from (select o.currency, sum(o.total) as amount
              from mirror.orders o join mirror.subscriptions s on s.id = o.subscription_id
              where o.customer_id = asked.id and o.status = 'failed' and s.status <> 'canceled'
              group by o.currency) d) as past_due,
       (select jsonb_agg(jsonb_build_object('currency', p.currency, 'amount', p.amount::text) order by p.currency)
        from (select t.currency, sum(case t.type when 'refund' then -abs(t.amount) else t.amount end) as amount
              from mirror.orders o join mirror.transactions t on t.order_id = o.id
              where o.customer_id = asked.id and t.status = 'succeeded' and t.type in ('sale', 'refund')
              group by t.currency) p) as paid
     from unnest(?::text[]) as asked(id)
     left join mirror.customers c on c.id = asked.id and ${isNotErased}`,
    [sqlArray(ids)],
  );
  return new Map(rows.map((row) => [row.id, wordsOf(row)]));
}

function wordsOf({ id, email, past_due: pastDue, paid }: Row): CustomerWords {
  const sums = (list: Row["paid"]) =>
    (list ?? []).map(({ currency, amount }) => moneyText(amount, currency)).join(", ") || "nothing";
  const masked = email === null ? null : maskedEmail(email);
  return {
    person: masked === hidden ? null : masked,
    facts: [
      { label: "Customer", value: masked === null ? id : `${masked} (${id})` },
      { label: "Past due in all", value: sums(pastDue) },
      { label: "Paid in a lifetime", value: sums(paid) },
    ],
  };
}

const hidden = "(hidden)";
/** How lists name customers, by id: `a…@e….com (cus_1)`. One statement. */
export async function customerNames(
  db: Knex,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.raw<{ rows: { id: string; email: string | null }[] }>(
    `select c.id, c.email from mirror.customers c where c.id = any(?::text[]) and ${isNotErased}`,
    [sqlArray(ids)],
  );
  return new Map(
    rows.map(({ id, email }) => [id, email === null ? id : `${maskedEmail(email)} (${id})`]),
  );
}

/** `ada@example.com` → `a…@e….com`; anything else is hidden whole. Pure. */
export function maskedEmail(email: string): string {
  const parts = /^(.)[^@]*@(.)[^@]*?(\.[a-z0-9-]{2,24})$/iu.exec(email);
  return parts === null ? hidden : `${parts[1]}…@${parts[2]}…${parts[3]}`;
}
