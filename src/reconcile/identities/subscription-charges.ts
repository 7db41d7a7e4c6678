import type { Identity } from "./identity.ts";
import { numberAt } from "./number-at.ts";

/** The number of the first cycle is not shown (spec): it is the one with which most subscriptions begin. */
const firstCycle = `
  (select coalesce(mode() within group (order by first), 1) from (
     select min(cycle) as first from order_facts
     where subscription_id is not null and cycle is not null and paid group by subscription_id) firsts)`;

/** Whether a coupon takes something off this order, so that a discount of 0 is one that was left out. */
const wouldDiscount = `
  coalesce(${numberAt("s.coupon", "amount")} > 0
           or floor(o.subtotal * ${numberAt("s.coupon", "percentage")} / 100) > 0, false)`;

export const subscriptionCharges: readonly Identity[] = [
  {
    name: "cycles",
    severity: "critical",
    mode: "enforce",
    subject: "subscription",
    holds: "the succeeded cycles of a subscription have no gap, from the first on",
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
    mode: "enforce",
    subject: "subscription",
    holds: "a cycle has one succeeded order",
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
    // Plans are not mirrored: the setup fee of the first cycle is not known, and a former amount may have been right.
    name: "cycle_amount",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "a cycle costs the plan's amount before discounts; the first one at least that",
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
    mode: "enforce",
    subject: "order",
    holds: "a coupon discounts the first cycle (once), the first n (repeating) or all (forever)",
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
    mode: "enforce",
    subject: "subscription",
    holds: "an active subscription is charged within 24 hours of its next_billing_date",
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
    mode: "enforce",
    subject: "order",
    holds: "no order is created after a subscription was canceled or completed",
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
