import { type Invariant, numberAt, smallNumberAt } from "./invariant.ts";

/**
 * SQL for the number of the first cycle. The interface does not state it: the one with which most subscriptions begin.
 */
const firstCycle = `
  (select coalesce(mode() within group (order by first), 1) from (
     select min(cycle) as first from order_facts
     where subscription_id is not null and cycle is not null and paid group by subscription_id) firsts)`;

/** SQL: the coupon would reduce this order, so a discount of 0 means that it was forgotten. */
const wouldDiscount = `
  coalesce(${numberAt("s.coupon", "amount")} > 0
           or floor(o.subtotal * ${numberAt("s.coupon", "percentage")} / 100) > 0, false)`;

export const subscriptionCharges: readonly Invariant[] = [
  {
    name: "cycles",
    severity: "critical",
    subject: "subscription",
    rule: "the paid cycles of a subscription have no gap, from the first on",
    breaches: `
      select o.subscription_id as id, min(o.currency) as currency,
             max(s.amount) * (max(o.cycle) - first.n + 1 - count(distinct o.cycle)) as at_risk,
             'cycles ' || first.n || ' to ' || max(o.cycle) as expected,
             count(distinct o.cycle) || ' of them, from ' || min(o.cycle) as found
      from order_facts o cross join (select ${firstCycle} as n) first
      join subscription_facts s on s.id = o.subscription_id
      where o.paid and o.cycle is not null
      group by o.subscription_id, first.n
      having count(distinct o.cycle) <> max(o.cycle) - first.n + 1 or min(o.cycle) <> first.n`,
  },
  {
    name: "cycle_once",
    severity: "critical",
    subject: "subscription",
    rule: "a cycle has at most one paid order",
    breaches: `
      select id, min(currency) as currency, cast(sum(too_much) as bigint) as at_risk, 'one order a cycle' as expected,
             string_agg('cycle ' || cycle || ': ' || orders || ' orders', ', ' order by cycle) as found
      from (
        select o.subscription_id as id, o.cycle, count(*) as orders, sum(o.total) - max(o.total) as too_much,
               min(o.currency) as currency
        from order_facts o join subscription_facts s on s.id = o.subscription_id
        where o.paid and o.cycle is not null
        group by o.subscription_id, o.cycle having count(*) > 1
      ) twice group by id`,
  },
  {
    // Plans are not mirrored: the setup fee of the first cycle is unknown. An amount that the plan once had is correct.
    name: "cycle_amount",
    severity: "high",
    subject: "order",
    rule: "a cycle costs the plan's amount before discounts; the first one at least that",
    breaches: `
      select o.id, o.currency, abs(o.subtotal - s.amount) as at_risk,
             case when o.cycle = first.n then 'at least ' else '' end || s.amount as expected,
             cast(o.subtotal as text) as found
      from order_facts o join subscription_facts s on s.id = o.subscription_id
      cross join (select ${firstCycle} as n) first
      where o.cycle is not null and s.amount is not null
        and case when o.cycle = first.n then o.subtotal < s.amount else o.subtotal <> s.amount end
        and not exists (
          select from mirror.versions v where v.resource = 'subscription' and v.id = s.id
            and v.data->'plan'->>'amount' = cast(o.subtotal as text))`,
  },
  {
    name: "coupon_duration",
    severity: "high",
    subject: "order",
    rule: "a coupon discounts the first cycle (once), the first n (repeating) or all (forever)",
    breaches: `
      select id, currency, at_risk, case when is_due then 'discounted' else 'no discount' end as expected,
             'cycle ' || cycle || ' with a discount of ' || discount_amount as found
      from (
        select o.*, case when o.discount_amount > 0 then o.discount_amount end as at_risk,
               case s.coupon->>'duration'
                 when 'once' then o.cycle = first.n
                 when 'repeating' then o.cycle - first.n < ${numberAt("s.coupon", "duration_in_cycles")}
                 when 'forever' then true end as is_due,
               ${wouldDiscount} as would_discount
        from order_facts o join subscription_facts s on s.id = o.subscription_id
        cross join (select ${firstCycle} as n) first
        where s.coupon is not null and o.cycle is not null and o.paid
      ) o where is_due and would_discount and discount_amount = 0 or not is_due and discount_amount > 0`,
  },
  {
    name: "missed_charge",
    severity: "critical",
    subject: "subscription",
    rule: "an active subscription is charged within 24 hours of its next_billing_date",
    breaches: `
      select s.id, s.currency, s.amount as at_risk, s.next_billing_date as at,
             'an order since ' || s.next_billing_date as expected, 'none' as found
      from subscription_facts s, moment
      where s.status = 'active' and s.next_billing_date < now - interval '24 hours'
        and not exists (select from order_facts o
                        where o.subscription_id = s.id and o.created_at >= s.next_billing_date)`,
  },
  {
    name: "after_cancel",
    severity: "critical",
    subject: "order",
    rule: "no order is created after a subscription was canceled or completed",
    breaches: `
      select o.id, o.currency, o.total as at_risk, 'none after ' || ended.at as expected,
             'created ' || o.created_at as found
      from subscription_facts s
      cross join lateral (
        select coalesce(s.canceled_at, case when s.status = 'completed' then (
          select min(v.source_updated_at) from mirror.versions v
          where v.resource = 'subscription' and v.id = s.id and v.data->>'status' = 'completed') end) as at
      ) ended
      join order_facts o on o.subscription_id = s.id
      where o.created_at > ended.at`,
  },
];

/** SQL: joins the newest order of subscription `s`. */
const latestOrder = `
  left join lateral (
    select o.* from order_facts o where o.subscription_id = s.id order by o.created_at desc, o.id desc limit 1
  ) latest on true`;

/**
 * SQL for the end of a period: its start plus one cycle, on the anchor's day or the last day of a shorter month.
 * Without an anchor, the day of the subscription's start counts. Both days are those of a clock that is `ahead` of UTC.
 */
const periodEnd = (ahead: string): string => `
  (case s.billing_cycle->>'interval'
     when 'day' then s.current_period_start + make_interval(days => n)
     when 'month' then (
       select target + make_interval(days => least(anchor, extract(day from last)::int) - 1)
              + (local - date_trunc('day', local)) - ${ahead}
       from (select s.current_period_start at time zone 'UTC' + ${ahead} as local) c,
            lateral (select date_trunc('month', local) + make_interval(months => n) as target) t,
            lateral (select target + interval '1 month - 1 day' as last) l,
            lateral (select coalesce(${smallNumberAt("s.billing_cycle", "anchor_day")},
                                     extract(day from s.start_date at time zone 'UTC' + ${ahead})::int) as anchor) a
     ) at time zone 'UTC' end)`;

/** SQL for the clocks of UTC, the earliest zone and the latest zone: one of them shows the local day of any zone. */
const clocks = "(values (interval '0'), (interval '14 hours'), (interval '-12 hours')) as clock(ahead)";

export const subscriptionStates: readonly Invariant[] = [
  {
    name: "stalled_dunning",
    severity: "high",
    subject: "subscription",
    rule: "a retry is made within 24 hours after it was due",
    breaches: `
      select s.id, s.currency, latest.total as at_risk, s.next_retry_at as at,
             'an attempt since ' || s.next_retry_at as expected, 'none' as found
      from subscription_facts s cross join moment ${latestOrder}
      where s.status = 'past_due' and s.next_retry_at < now - interval '24 hours'
        and not exists (
          select from order_facts o join transaction_facts t on t.order_id = o.id
          where o.subscription_id = s.id and t.type = 'sale' and t.created_at >= s.next_retry_at)`,
  },
  {
    name: "past_due",
    severity: "high",
    subject: "subscription",
    rule: "a subscription is past_due, and not active, exactly when its latest cycle failed",
    breaches: `
      select s.id, s.currency, latest.total as at_risk, latest.created_at as at,
             case when s.status = 'active' then 'a latest cycle that did not fail' else 'a latest cycle that failed' end
               as expected,
             s.status || ', latest order ' || coalesce(latest.status, 'unknown') as found
      from subscription_facts s ${latestOrder}
      where s.status in ('active', 'past_due') and latest.id is not null
        and (s.status = 'past_due') <> (latest.status = 'failed')`,
  },
  {
    name: "failed_subscription",
    severity: "high",
    subject: "subscription",
    rule: "a failed subscription has one order: failed, without a cycle",
    breaches: `
      select s.id, s.currency, max(o.captured_amount) as at_risk, 'one failed order without a cycle' as expected,
             coalesce(string_agg(o.status || coalesce(' in cycle ' || o.cycle, ''), ', ' order by o.created_at, o.id),
                      'no order') as found
      from subscription_facts s left join order_facts o on o.subscription_id = s.id
      where s.status = 'failed' group by s.id, s.currency
      having count(o.id) <> 1 or bool_or(o.status <> 'failed' or o.cycle is not null)`,
  },
  {
    // The interface does not say in which time zone days begin, and at the end of a month a day decides which month it
    // is. The nearest end of any zone counts, and a difference of less than a day as equal.
    name: "period",
    severity: "warning",
    subject: "subscription",
    rule: "a period ends one cycle after its start, where the next billing is",
    breaches: `
      select id, currency, null::bigint as at_risk, cast(due as text) as expected,
             concat_ws(', ', 'ends ' || current_period_end, 'next billing ' || next_billing_date) as found
      from (
        select s.*, nearest.due
        from (select f.*, ${smallNumberAt("billing_cycle", "interval_count")} as n
              from subscription_facts f where status in ('active', 'past_due')) s
        cross join lateral (
          select d.due from (select ${periodEnd("clock.ahead")} as due from ${clocks} offset 0) d
          order by abs(extract(epoch from s.current_period_end - d.due)) limit 1
        ) nearest
      ) s
      where abs(extract(epoch from current_period_end - due)) >= 86400
         or next_billing_date <> current_period_end`,
  },
  {
    name: "term",
    severity: "high",
    subject: "subscription",
    rule: "the current cycle is not beyond the last one, and in the last one the subscription is completed",
    breaches: `
      select id, currency, null::bigint as at_risk, 'at most ' || total_billing_cycles || ', then completed' as expected,
             status || ' in cycle ' || current_billing_cycle as found
      from subscription_facts
      where total_billing_cycles > 0
        and (current_billing_cycle > total_billing_cycles
             or (current_billing_cycle = total_billing_cycles and status in ('active', 'past_due', 'paused')))`,
  },
  {
    name: "canceled_at",
    severity: "warning",
    subject: "subscription",
    rule: "canceled_at is set exactly on a canceled subscription",
    breaches: `
      select id, currency, null::bigint as at_risk,
             case when status = 'canceled' then 'a time' else 'none' end as expected,
             status || coalesce(', canceled at ' || canceled_at, ', no canceled_at') as found
      from subscription_facts where (status = 'canceled') <> (canceled_at is not null)`,
  },
  {
    name: "deleted_live",
    severity: "high",
    subject: "customer",
    rule: "a deleted customer has no active or paused subscription",
    breaches: `
      select c.id, min(s.currency) as currency, cast(sum(s.amount) as bigint) as at_risk, c.deleted_at as at,
             'no live subscription' as expected, string_agg(s.id || ' ' || s.status, ', ' order by s.id) as found
      from mirror.customers c join subscription_facts s on s.customer_id = c.id
      where c.deleted_at is not null and s.status in ('active', 'paused') group by c.id`,
  },
];
