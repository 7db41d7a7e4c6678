import type { Invariant } from "./invariant.ts";

/** The balance of each currency by the orders' statuses alone, without their history. */
const byOrders = `
  select coalesce(currency, 'xxx') as currency,
         sum(case status when 'succeeded' then total when 'refunded' then 0 else total - refunded end
           - case when status in ('chargeback', 'chargeback_accepted') or (not disputed and charged_back)
                  then total else 0 end) as closing
  from order_facts where paid group by 1`;

/**
 * The amounts captured, refunded and charged back, by the transactions and the history; and the unsettled ones, whose
 * orders are paid by their status already.
 */
const byFlows = `
  select coalesce(currency, 'xxx') as currency, sum(sale) as sales, sum(unsettled) as unsettled,
         sum(refund) as refunds, sum(opened) as opened, sum(dismissed) as dismissed
  from (
    select currency, case when captured then amount end as sale, null::bigint as unsettled,
           case when refunded then amount end as refund, null::bigint as opened, null::bigint as dismissed
    from transaction_facts
    union all
    select t.currency, null, t.amount, null, null, null
    from transaction_facts t join order_facts o on o.id = t.order_id where t.unsettled and o.paid
    union all
    select currency, null, null, null, amount, case when state = 'dismissed' then amount end
    from mirror.chargebacks c
    where not exists (select from in_flight f where f.resource = 'chargeback' and f.id = c.key)
  ) flows group by 1`;

/**
 * The daily sums that this run read from the service in closed slices, next to the mirror's sums within the same
 * bounds, by the rules of the report daily-control. A day with changes after the slice was read proves nothing.
 */
const days = `
  with read as (
    select c.slice, c.read_at, c.created_from, c.created_before, time_zone, c.run
    from moment join reconcile.coverage c using (run)
    where c.resource = 'transaction' and c.is_closed and c.state = 'complete'
  ), there as (
    select s.slice, s.day, s.currency, s.type, s.status, s.n, s.sum_minor as total
    from read join reconcile.daily_sums s using (run, slice)
  ), here as (
    select read.slice, s.*
    from read cross join lateral reports.day_sums(
      coalesce(read.created_from, '-infinity'), coalesce(read.created_before, 'infinity'), time_zone) s
  ), changed as (
    select slice, day, max(changed_at) as changed_at from here group by slice, day
  )
  select day || ' ' || currency || ' ' || type || ' ' || status as id, currency, f.*,
         reports.sums_outcome(f.service_count, f.service_sum, f.mirror_count, f.mirror_sum, changed.changed_at,
                              read.read_at) as outcome
  from there full join here using (slice, day, currency, type, status)
  join read using (slice) left join changed using (slice, day)
  cross join lateral (
    select coalesce(there.n, 0) as service_count, coalesce(there.total, 0) as service_sum,
           coalesce(here.n, 0) as mirror_count, coalesce(here.total, 0) as mirror_sum
  ) f`;

export const controlSums: readonly Invariant[] = [
  {
    name: "roll_forward",
    severity: "critical",
    subject: "currency",
    rule: "sales (captured and unsettled) − refunds − chargebacks + dismissed ones = the balance by the orders' statuses",
    breaches: `
      select id, id as currency, cast(abs(moved - closing) as bigint) as at_risk, cast(closing as text) as expected,
             sales || case when unsettled > 0 then ' + ' || unsettled || ' unsettled' else '' end || ' − ' || refunds
               || ' − ' || opened || ' + ' || dismissed || ' = ' || moved as found
      from (
        select currency as id, coalesce(closing, 0) as closing, coalesce(sales, 0) as sales,
               coalesce(unsettled, 0) as unsettled, coalesce(refunds, 0) as refunds, coalesce(opened, 0) as opened,
               coalesce(dismissed, 0) as dismissed,
               coalesce(sales, 0) + coalesce(unsettled, 0) - coalesce(refunds, 0) - coalesce(opened, 0)
                 + coalesce(dismissed, 0) as moved
        from (${byFlows}) flows full join (${byOrders}) orders using (currency)
      ) ledger where moved <> closing`,
  },
  {
    name: "control",
    severity: "critical",
    subject: "day",
    rule: "by day, currency, type and status, the transactions' count and sum equal the service's",
    breaches: `
      select id, currency, cast(max(abs(service_sum - mirror_sum)) as bigint) as at_risk,
             min(service_count || ' with a sum of ' || service_sum) as expected,
             min(mirror_count || ' with a sum of ' || mirror_sum) as found
      from (${days}) days
      where outcome = 'differs' group by id, currency`,
    examined: `select id from (${days}) days where outcome <> 'changed since'`,
  },
];
