import type { Identity } from "./invariant.ts";

const wasChargedBack = `
  exists (select from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = s.id
            and v.data->>'status' like 'chargeback%')`;

/** The chargebacks of the orders examined. `mirror.chargebacks` takes the amount from the sale. */
const disputed = `
  mirror.chargebacks c join order_facts o on o.id = c.order_id`;

export const chargebacks: readonly Identity[] = [
  {
    // Observed only: the interface does not say whether a dismissal restores the sale's status, nor whether every
    // chargeback shows on both order and sale.
    name: "chargeback_match",
    severity: "critical",
    mode: "observe",
    subject: "order",
    holds: "an order is in a chargeback status exactly when its sale is or was charged back",
    breaches: `
      select id, currency, total as at_risk,
             case when disputed then 'a sale that was charged back' else 'a chargeback status' end as expected,
             case when disputed then status || ', no sale was' else status || ', its sale was charged back' end as found
      from (
        select o.*, exists (select from transaction_facts s where s.order_id = o.id and s.type = 'sale'
                              and (s.status = 'chargeback' or ${wasChargedBack})) as sale_was
        from order_facts o where o.disputed or o.id in (select order_id from mirror.chargebacks)
      ) o where disputed <> sale_was`,
  },
  {
    name: "chargeback_origin",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds:
      "a chargeback comes after a captured sale, is then accepted or dismissed, and never goes back",
    breaches: `
      select o.id, o.currency, o.total as at_risk, 'a sale captured before ' || min(v.source_updated_at) as expected,
             'captured at ' || o.captured_at as found
      from order_facts o join mirror.versions v on v.resource = 'order' and v.id = o.id
      where v.data->>'status' like 'chargeback%' and o.captured_at is not null
      group by o.id, o.currency, o.total, o.captured_at having min(v.source_updated_at) < o.captured_at
      union all
      select o.id, o.currency, o.total, min(former) || ' is final or becomes accepted or dismissed',
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
      group by o.id, o.currency, o.total`,
  },
  {
    // A double loss for certain, whatever the chargeback's amount, which the interface does not show.
    name: "double_loss",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds:
      "nothing is refunded after a chargeback, and nothing charged back that was refunded whole",
    breaches: `
      select o.id, o.currency, least(o.refunded, o.total) as at_risk, 'a refund or a chargeback' as expected,
             o.refunded || ' refunded, charged back at ' || c.opened_at as found
      from ${disputed}
      where c.state <> 'dismissed' and o.total > 0 and o.refunded > 0
        and (o.refunded >= o.total or o.last_refund_at >= c.opened_at)`,
  },
  {
    // Depends on the chargeback's amount: a bank may take back only the rest.
    name: "double_loss_partial",
    severity: "critical",
    mode: "observe",
    subject: "order",
    holds: "refunds and the whole sale charged back do not exceed the total",
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
    mode: "enforce",
    subject: "chargeback",
    holds: "a chargeback is decided within 120 days",
    breaches: `
      select c.key as id, c.currency, c.amount as at_risk, 'decided within 120 days' as expected,
             'open since ' || c.opened_at as found
      from mirror.chargebacks c, moment where c.state = 'opened' and c.opened_at < now - interval '120 days'`,
  },
];
