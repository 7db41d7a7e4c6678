import { type Invariant, numberAt } from "./invariant.ts";

const couponNumber = (key: string): string => numberAt("coupon", key);

/**
 * SQL for discounts that break a coupon's terms: `formula` gives the allowed discount on the whole subtotal, and `kind`
 * is the field that such a coupon has. The order's coupon does not show which items were eligible, so this is an upper
 * bound; it is exact where the coupon's scope is `all`. A cycle without a discount may be beyond the coupon's duration.
 */
const discountBreaches = (formula: string, kind: string): string => `
  select id, currency, cast(least(abs(discount_amount - allowed), subtotal) as bigint) as at_risk,
         case when is_exact then '' else 'at most ' end || allowed as expected, cast(discount_amount as text) as found
  from (
    select o.*, ${formula} as allowed,
           coalesce(coupon->>case when subscription_id is null then 'product_scope' else 'plan_scope' end, '') = 'all'
             and not (subscription_id is not null and discount_amount = 0) as is_exact
    from (select order_facts.*, ${couponNumber("amount")} as amount_off, ${couponNumber("percentage")} as percentage,
                 ${couponNumber("max_discount_amount")} as cap from order_facts where coupon is not null) o
    where ${kind} is not null
  ) compared
  where discount_amount > allowed or (is_exact and discount_amount < allowed)`;

export const orderAmounts: readonly Invariant[] = [
  {
    name: "total",
    severity: "critical",
    subject: "order",
    rule: "total = subtotal − discount_amount",
    breaches: `
      select id, currency, abs(total - subtotal + discount_amount) as at_risk,
             cast(subtotal - discount_amount as text) as expected, cast(total as text) as found
      from order_facts where total <> subtotal - discount_amount`,
  },
  {
    name: "bounds",
    severity: "critical",
    subject: "order",
    rule: "0 ≤ discount_amount ≤ subtotal",
    breaches: `
      select id, currency, greatest(discount_amount - subtotal, -discount_amount) as at_risk,
             '0 to ' || subtotal as expected, cast(discount_amount as text) as found
      from order_facts where discount_amount < 0 or discount_amount > subtotal`,
  },
  {
    name: "coupon_null",
    severity: "high",
    subject: "order",
    rule: "without a coupon the discount is 0",
    breaches: `
      select id, currency, abs(discount_amount) as at_risk, '0' as expected, cast(discount_amount as text) as found
      from order_facts where coupon is null and discount_amount <> 0`,
  },
  {
    name: "coupon_fixed",
    severity: "high",
    subject: "order",
    rule: "a coupon with an amount gives min(amount, eligible total)",
    breaches: discountBreaches("least(amount_off, subtotal)", "amount_off"),
  },
  {
    name: "coupon_percentage",
    severity: "high",
    subject: "order",
    rule: "a coupon with a percentage gives min(floor(eligible total · percentage / 100), cap)",
    breaches: discountBreaches("least(floor(subtotal * percentage / 100), cap)", "percentage"),
  },
  {
    name: "coupon_shape",
    severity: "warning",
    subject: "order",
    rule: "a coupon has exactly one of percentage and amount, and a cap only with a percentage",
    breaches: `
      select id, currency, discount_amount as at_risk, 'one of percentage and amount' as expected,
             concat_ws(', ', 'percentage ' || (coupon->>'percentage'), 'amount ' || (coupon->>'amount'),
                       'cap ' || (coupon->>'max_discount_amount')) as found
      from order_facts
      where coupon is not null
        and (num_nonnulls(coupon->>'percentage', coupon->>'amount') <> 1
             or (coupon->>'max_discount_amount' is not null and coupon->>'percentage' is null))`,
  },
];

export const orderCharges: readonly Invariant[] = [
  {
    name: "one_sale",
    severity: "critical",
    subject: "order",
    rule: "an order has at most one captured or unsettled sale",
    breaches: `
      select id, currency, captured_amount + unsettled_amount - total as at_risk,
             'at most 1 captured or unsettled sale' as expected,
             captured || ' captured sales' || case when unsettled > 0 then ', ' || unsettled || ' unsettled' else '' end
               as found
      from order_facts where captured + unsettled > 1`,
  },
  {
    name: "sale_amount",
    severity: "critical",
    subject: "order",
    rule: "the amount of a captured or unsettled sale is the order's total",
    breaches: `
      select o.id, o.currency, cast(sum(abs(t.amount - o.total)) as bigint) as at_risk,
             cast(o.total as text) as expected, string_agg(cast(t.amount as text), ', ' order by t.id) as found
      from order_facts o join transaction_facts t on t.order_id = o.id
      where (t.captured or t.unsettled) and t.amount <> o.total group by o.id, o.currency, o.total`,
  },
  {
    name: "paid_status",
    severity: "critical",
    subject: "order",
    rule:
      "a paid or charged-back order has a captured or unsettled sale (none for a total of 0); a failed order has no " +
      "captured sale, and has a failure_code",
    breaches: `
      select id, currency, case when status = 'failed' then captured_amount else total end as at_risk,
             case when status = 'failed' then 'no captured sale and a failure_code'
                  else 'a captured or unsettled sale' end as expected,
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
    subject: "order",
    rule: "currency, customer and payment method are equal on an order and its captured or unsettled sale",
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
    // An order's count comes from its last order.failed event, which may have been missed: it can only be too low.
    name: "attempts",
    severity: "warning",
    subject: "order",
    rule: "each sale counts as one attempt, and the count never falls",
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
    subject: "order",
    rule: "a customer does not pay for the same items at the same total twice within 10 minutes",
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

export const refunds: readonly Invariant[] = [
  {
    name: "refund_cap",
    severity: "critical",
    subject: "order",
    rule: "succeeded refunds do not exceed the order's total",
    breaches: `
      select id, currency, refunded - total as at_risk, 'at most ' || total as expected,
             cast(refunded as text) as found
      from order_facts where refunded > total`,
  },
  {
    // Refunds beyond the total are left to refund_cap.
    name: "refund_status",
    severity: "high",
    subject: "order",
    rule: "succeeded: no refunds; partially_refunded: less than the total; refunded: the total",
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
    subject: "order",
    rule: "an order is refund_failed when its latest refund failed",
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
    subject: "transaction",
    rule: "a refund follows a captured or unsettled sale of its order",
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
