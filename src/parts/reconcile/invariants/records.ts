import { mirrorResources } from "../../../core/mirror/resources.ts";
import type { Invariant } from "./invariant.ts";

/** The source of each resource's rows: its facts where there are some, which leave out objects in flight. */
const rowsOf = new Map([
  ...mirrorResources.map(({ name, table }) => [name, `mirror.${table}`] as const),
  ["order", "order_facts"],
  ["transaction", "transaction_facts"],
  ["subscription", "subscription_facts"],
]);

const updatedBeforeCreated = [...rowsOf]
  .map(
    ([resource, rows]) =>
      `select '${resource}' as resource, id, created_at, updated_at from ${rows} where updated_at < created_at`,
  )
  .join(" union all ");

/** SQL: five business days (Monday to Friday) later, which is one week; from a weekend it counts from Monday on. */
const afterFiveBusinessDays = (at: string): string => `
  (case extract(isodow from ${at} at time zone 'UTC')
     when 6 then date_trunc('day', ${at}, 'UTC') + interval '2 days'
     when 7 then date_trunc('day', ${at}, 'UTC') + interval '1 day' else ${at} end + interval '7 days')`;

export const recordInvariants: readonly Invariant[] = [
  {
    name: "pending_age",
    severity: "high",
    subject: "order",
    rule: "an order is pending for at most 15 minutes, a transaction pending or in progress for at most 5 business days",
    breaches: `
      select 'order' as resource, id, currency, total as at_risk, 'paid or failed within 15 minutes' as expected,
             'pending since ' || created_at as found
      from order_facts, moment where status = 'pending' and created_at < now - interval '15 minutes'
      union all
      select 'transaction', id, currency, amount, 'settled or failed within 5 business days',
             status || ' since ' || created_at
      from transaction_facts, moment
      where status in ('pending', 'in_progress') and ${afterFiveBusinessDays("created_at")} < now`,
  },
  {
    name: "orphan",
    severity: "high",
    subject: "transaction",
    rule: "only an authorisation has no order",
    breaches: `
      select id, currency, amount as at_risk, 'an order' as expected, type || ' without an order' as found
      from transaction_facts where order_id is null and type is distinct from 'auth'`,
  },
  {
    // A row that lacks one of these is missing from reports.movements, or its amount is, so the balances are wrong.
    name: "bookable",
    severity: "critical",
    subject: "transaction",
    rule: "what moves money is a sale or a refund, and has a time, an amount and a currency",
    breaches: `
      select id, currency, amount as at_risk, 'a sale or refund with a time, an amount and a currency' as expected,
             coalesce(type, 'no type') || ', ' || status || concat(
               case when created_at is null then ', without a time' end,
               case when amount is null then ', without an amount' end,
               case when currency is null then ', without a currency' end) as found
      from transaction_facts t
      where (captured or refunded
             or unsettled and exists (select from order_facts o where o.id = t.order_id and o.paid))
        and num_nulls(created_at, amount, currency) > 0
        or status = 'succeeded' and coalesce(type not in ('sale', 'refund', 'auth'), true)`,
  },
  {
    name: "order_number",
    severity: "warning",
    subject: "order",
    rule: "an order number is unique and has 8 alphanumeric characters",
    breaches: `
      select id, currency, null::bigint as at_risk, '8 alphanumeric characters, unique' as expected,
             coalesce(order_number, 'none') as found
      from (select id, currency, order_number, count(*) over (partition by order_number) as times from order_facts) o
      where times > 1 or order_number is null or order_number !~ '^[A-Za-z0-9]{8}$'`,
  },
  {
    name: "time",
    severity: "warning",
    subject: "order",
    rule: "created_at ≤ updated_at, and updated_at never goes back from one read to the next",
    breaches: `
      select resource, id, null as currency, null::bigint as at_risk, 'updated at or after ' || created_at as expected,
             'updated at ' || updated_at as found
      from (${updatedBeforeCreated}) backwards
      union all
      select resource, id, null, null, 'updated at or after ' || max(former),
             'a later read shows ' || min(source_updated_at)
      from (
        select resource, id, source_updated_at,
               lag(source_updated_at) over (partition by resource, id order by observed_at, source_updated_at) as former
        from mirror.versions
        where observed_at is not null and resource in (${[...rowsOf.keys()].map((resource) => `'${resource}'`).join(", ")})
      ) reads where source_updated_at < former group by resource, id`,
  },
];
