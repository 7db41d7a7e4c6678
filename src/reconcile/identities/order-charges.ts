import type { Identity } from "./identity.ts";
import { numberAt } from "./number-at.ts";

export const orderCharges: readonly Identity[] = [
  {
    name: "one_sale",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds: "an order has at most one sale that is captured or on the way to it",
    breaches: `
      select id, currency, captured_amount + unsettled_amount - total as at_risk, 'at most 1 captured sale' as expected,
             captured || ' captured sales' || case when unsettled > 0 then ', ' || unsettled || ' unsettled' else '' end
               as found
      from order_facts where captured + unsettled > 1`,
  },
  {
    name: "sale_amount",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds: "a captured sale, or one on the way to it, has the order's total as its amount",
    breaches: `
      select o.id, o.currency, cast(sum(abs(t.amount - o.total)) as bigint) as at_risk,
             cast(o.total as text) as expected, string_agg(cast(t.amount as text), ', ' order by t.id) as found
      from order_facts o join transaction_facts t on t.order_id = o.id
      where (t.captured or t.unsettled) and t.amount <> o.total group by o.id, o.currency, o.total`,
  },
  {
    name: "paid_status",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds:
      "a paid or charged-back order has a sale that is captured or not settled yet (none for a total of 0); a failed " +
      "one has no captured one, and a failure_code",
    breaches: `
      select id, currency, case when status = 'failed' then captured_amount else total end as at_risk,
             case when status = 'failed' then 'no captured sale and a failure_code'
                  else 'a sale, captured or not settled yet' end as expected,
             case when captured > 0 then status || ' with a captured sale'
                  when status = 'failed' then 'failed without a failure_code'
                  else status || ' without a sale' end as found
      from order_facts
      where (paid and total > 0 and captured + unsettled = 0)
         or (status = 'failed' and (captured > 0 or failure_code is null))`,
  },
  {
    name: "same_party",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds:
      "currency, customer and payment method are equal on an order and its sale, captured or not settled yet",
    breaches: `
      select id, currency, max(amount) as at_risk, min(expected) as expected, min(found) as found
      from (
        select o.id, o.currency, t.amount,
               concat_ws(', ', o.currency, o.customer_id, o.payment_method_id) as expected,
               concat_ws(', ', t.currency, t.customer_id, t.payment_method_id) as found
        from order_facts o join transaction_facts t on t.order_id = o.id
        where (t.captured or t.unsettled) and (t.currency <> o.currency or t.customer_id <> o.customer_id
                              or t.payment_method_id <> o.payment_method_id)
      ) parties group by id, currency`,
  },
  {
    // The count of order.failed is that of its last event, which may have been missed: it can only be too low.
    name: "attempts",
    severity: "warning",
    mode: "enforce",
    subject: "order",
    holds: "attempts are counted one a sale, and the count never falls",
    breaches: `
      select o.id, o.currency, null::bigint as at_risk, o.sales || ' attempts' as expected,
             greatest(o.attempt_count, t.attempts) || ' attempts' as found
      from order_facts o
      left join (
        select order_id, max(attempt_count) as attempts, bool_and(attempt_count is not null) as all_known
        from transaction_facts where type = 'sale' group by order_id
      ) t on t.order_id = o.id
      where o.attempt_count > o.sales or (t.all_known and t.attempts <> o.sales)
      union all
      select id, null, null, 'at least ' || max(former) || ' attempts', min(attempts) || ' attempts later'
      from (
        select id, attempts, lag(attempts) over (partition by id order by source_updated_at, attempts) as former
        from (
          select id, source_updated_at,
                 ${numberAt("data", "attempt_count")} as attempts
          from mirror.versions where resource = 'order.dunning'
        ) counted
      ) counts where attempts < former group by id`,
  },
  {
    name: "double_order",
    severity: "warning",
    mode: "enforce",
    subject: "order",
    holds: "a customer does not pay for the same items at the same total twice within 10 minutes",
    breaches: `
      select later.id, later.currency, later.total as at_risk, 'one order' as expected,
             'the same as ' || later.former as found
      from (
        select id, currency, total, created_at, lag(id) over same as former, lag(created_at) over same as former_at
        from order_facts where subscription_id is null and (captured > 0 or paid and unsettled > 0)
        window same as (partition by customer_id, currency, total order by created_at, id)
      ) later
      join mirror.orders a on a.id = later.id
      join mirror.orders b on b.id = later.former
      where later.created_at - later.former_at < interval '10 minutes'
        and (select jsonb_agg(jsonb_build_array(i->'product_id', i->'quantity') order by i->>'product_id', i->>'quantity')
             from jsonb_array_elements(a.items) i)
          = (select jsonb_agg(jsonb_build_array(i->'product_id', i->'quantity') order by i->>'product_id', i->>'quantity')
             from jsonb_array_elements(b.items) i)`,
  },
];
