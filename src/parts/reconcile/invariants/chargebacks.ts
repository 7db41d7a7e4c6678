import type { Invariant } from "./invariant.ts";

const wasChargedBack = `
  exists (select from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = s.id
            and v.data->>'status' like 'chargeback%')`;

/** In a mirror that was filled later, the sale may have its status back, and no data shows which it was. */
const onlySeenDismissed = `
  o.status = 'chargeback_dismissed' and not exists (
    select from mirror.versions v
    where v.resource = 'order' and v.id = o.id and v.data->>'status' = 'chargeback')`;

/** The chargebacks of the orders examined. `mirror.chargebacks` takes the amount from the sale. */
const disputed = `
  mirror.chargebacks c join order_facts o on o.id = c.order_id`;

export const chargebacks: readonly Invariant[] = [
  {
    // Observed only: the interface does not say whether a dismissal restores the sale's status, nor whether every
    // chargeback appears on both order and sale.
    name: "chargeback_match",
    severity: "critical",
    mode: "observe",
    subject: "order",
    rule: "an order is in a chargeback status exactly when its sale is or was charged back",
    breaches: `
      select id, currency, total as at_risk,
             case when disputed then 'a sale that was charged back' else 'a chargeback status' end as expected,
             status || case when disputed then ', without' else ', with' end || ' a charged-back sale' as found
      from (
        select o.*, exists (select from transaction_facts s where s.order_id = o.id and s.type = 'sale'
                              and (s.status = 'chargeback' or ${wasChargedBack})) as sale_was
        from order_facts o
        where (o.disputed or o.id in (select order_id from mirror.chargebacks)) and not (${onlySeenDismissed})
      ) o where disputed <> sale_was`,
  },
  {
    name: "chargeback_origin",
    severity: "high",
    subject: "order",
    rule: "a chargeback follows the captured sale, then is accepted or dismissed; only a dismissed one is opened again",
    breaches: `
      select o.id, o.currency, o.total as at_risk, 'a sale captured before ' || min(v.source_updated_at) as expected,
             'captured at ' || o.captured_at as found
      from order_facts o join mirror.versions v on v.resource = 'order' and v.id = o.id
      where v.data->>'status' like 'chargeback%' and o.captured_at is not null
      group by o.id, o.currency, o.total, o.captured_at having min(v.source_updated_at) < o.captured_at
      union all
      select o.id, o.currency, o.total, 'a chargeback, then accepted or dismissed; again after dismissed alone',
             string_agg(former || ' then ' || step.status, ', ' order by step.source_updated_at)
      from (
        select v.id, v.source_updated_at, v.data->>'status' as status,
               lag(v.data->>'status') over changes as former, lag(v.source_updated_at) over changes as former_at
        from mirror.versions v
        where v.resource = 'order' and v.id in (
          select id from mirror.versions where resource = 'order' and data->>'status' like 'chargeback%')
        window changes as (partition by v.id order by v.source_updated_at, reports.status_rank(v.data->>'status'),
                                      v.content_hash)
      ) step join order_facts o on o.id = step.id
      where former like 'chargeback%' and step.status <> former and step.source_updated_at > former_at
        and not (former = 'chargeback' and step.status in ('chargeback_accepted', 'chargeback_dismissed'))
        and not (former = 'chargeback_dismissed' and step.status = 'chargeback')
      group by o.id, o.currency, o.total`,
  },
  {
    // A certain double loss for any amount of the chargeback, which the interface does not show.
    name: "double_loss",
    severity: "critical",
    subject: "order",
    rule: "no refund follows a chargeback, and no fully refunded order is charged back",
    breaches: `
      select o.id, o.currency, least(o.refunded, o.total) as at_risk, 'a refund or a chargeback, not both' as expected,
             o.refunded || ' refunded, charged back at ' || c.opened_at as found
      from ${disputed}
      where c.state <> 'dismissed' and o.total > 0 and o.refunded > 0
        and (o.refunded >= o.total or o.last_refund_at >= c.opened_at)`,
  },
  {
    // Observed only: a bank may take back only the amount that was not refunded, and the interface does not show how
    // much.
    name: "double_loss_partial",
    severity: "critical",
    mode: "observe",
    subject: "order",
    rule: "refunds and the charged-back sale together do not exceed the order's total",
    breaches: `
      select o.id, o.currency, o.refunded as at_risk, 'at most ' || o.total as expected,
             o.refunded || ' refunded and ' || c.amount || ' charged back' as found
      from ${disputed}
      where c.state <> 'dismissed' and o.refunded > 0 and o.refunded < o.total and o.refunded + c.amount > o.total
        and o.last_refund_at < c.opened_at`,
  },
  {
    name: "chargeback_aging",
    severity: "warning",
    subject: "chargeback",
    rule: "a chargeback ends within 120 days",
    breaches: `
      select c.key as id, c.currency, c.amount as at_risk, 'accepted or dismissed within 120 days' as expected,
             'open since ' || c.opened_at as found
      from mirror.chargebacks c, moment where c.state = 'opened' and c.opened_at < now - interval '120 days'`,
  },
];
