import type { Identity } from "./identity.ts";

export const refunds: readonly Identity[] = [
  {
    name: "refund_cap",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds: "succeeded refunds do not exceed the order's total",
    breaches: `
      select id, currency, refunded - total as at_risk, 'at most ' || total as expected,
             cast(refunded as text) as found
      from order_facts where refunded > total`,
  },
  {
    // What exceeds the total is refund_cap's.
    name: "refund_status",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "succeeded: no refunds; partially_refunded: less than the total; refunded: the total",
    breaches: `
      select id, currency, abs(case status when 'succeeded' then 0 else total end - least(refunded, total)) as at_risk,
             status as expected, refunded || ' of ' || total || ' refunded' as found
      from order_facts
      where total > 0 and case status
          when 'succeeded' then refunded <> 0
          when 'partially_refunded' then refunded <= 0 or refunded >= total
          when 'refunded' then refunded < total end`,
  },
  {
    name: "refund_failed",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "an order is refund_failed when its latest refund failed",
    breaches: `
      select o.id, o.currency, coalesce(r.amount, o.total) as at_risk, 'a failed latest refund' as expected,
             coalesce('latest refund ' || r.status, 'no refund') as found
      from order_facts o
      left join lateral (
        select t.status, t.amount from transaction_facts t where t.order_id = o.id and t.type = 'refund'
        order by t.created_at desc, t.updated_at desc, t.id desc limit 1
      ) r on true
      where o.status = 'refund_failed' and r.status is distinct from 'failed'`,
  },
  {
    name: "refund_parent",
    severity: "high",
    mode: "enforce",
    subject: "transaction",
    holds: "a refund follows a sale of its order that is captured, or on the way to it",
    breaches: `
      select r.id, r.currency, r.amount as at_risk, 'a sale before ' || r.created_at as expected,
             coalesce('sold at ' || min(s.created_at), 'no sale') as found
      from transaction_facts r
      left join transaction_facts s on s.order_id = r.order_id and (s.captured or s.unsettled)
      where r.type = 'refund' and r.order_id is not null
      group by r.id, r.currency, r.amount, r.created_at
      having min(s.created_at) is null or min(s.created_at) > r.created_at`,
  },
];
