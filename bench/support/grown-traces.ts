import type { ClientBase } from "pg";
import { idSql } from "./fill-year.ts";
import { filledYear, yearStart } from "./year.ts";

/** The visitors' present: the last day of the filled year. */
export const peopleLookAt = new Date(`${filledYear}-12-31T12:00:00Z`);

/**
 * Adds a year's other data to a grown database: an alert for every fortieth order, with its history and two messages;
 * findings, of which one in fifty is not healed; dead events and failed ones; the answers of a week; a handler with a
 * backlog; people, with their acts and cases.
 */
export async function fillTraces(
  client: ClientBase,
  { orders, events }: { orders: number; events: number },
): Promise<void> {
  const step = `interval '${Math.floor(31_536_000_000 / orders)} ms'`;
  const day = `timestamptz '${peopleLookAt.toISOString()}'`;
  const at = `timestamptz '${yearStart}' + n * ${step}`;
  const statements = [
    "set timezone = 'UTC'",
    // As a worker leaves it: renewals of the last weeks know their next retry, older ones were paid; old disputes are over.
    `update mirror.orders set next_retry_at = ${day} + (random() * 5 - 0.2) * interval '1 day', attempt_count = 2,
       dunning_version = version
     where status = 'failed' and subscription_id is not null and created_at > ${day} - interval '20 days'`,
    `update mirror.orders set status = 'succeeded'
     where status = 'failed' and subscription_id is not null and created_at <= ${day} - interval '20 days'`,
    `update mirror.orders set status = 'chargeback_dismissed'
     where status = 'chargeback' and created_at <= ${day} - interval '60 days'`,
    `insert into alerts.alerts (key, rule, severity, state, stage, order_id, customer_id, amount_minor, currency,
       opened_at, updated_at, resolved_at, facts, found_by, created_at)
     select 'bench:' || n, (array['dunning_renewal', 'declined_order', 'chargeback', 'refund_large'])[1 + n / 40 % 4],
       (array['warning', 'warning', 'critical', 'info', 'error'])[1 + n / 40 % 5], state, 'opened', ${idSql("order", "n")},
       ${idSql("customer", `n % ${orders / 4}`)}, 2900, 'usd', at, at, case when state = 'resolved' then at + interval '9 days' end,
       '{"title": "Renewal declined", "advice": "Nothing to do yet."}', 'event', at
     from generate_series(40, ${orders}, 40) n, lateral (select ${at} as at,
       case when n % 2000 = 0 then 'open' when n % 4000 = 40 then 'acknowledged' else 'resolved' end as state) a`,
    `insert into alerts.history (alert_id, change, stage, at, found_by, recorded_at)
     select id, change, change, at, 'event', at from alerts.alerts, lateral (values ('opened', opened_at),
       ('resolved', resolved_at)) c(change, at) where at is not null`,
    `insert into alerts.outbox (channel, alert_id, stage, action, message, due_at, state, sent_at, created_at)
     select channel, id, 'opened', 'trigger', '{"title": "Renewal declined"}', opened_at, 'sent', opened_at, opened_at
     from alerts.alerts, unnest(array['slack', 'mail']) channel`,
    `insert into reconcile.findings (key, class, severity, resource, object_id, differences, amount_at_risk_minor,
       currency, state, first_seen, last_seen, healed_at, cause, evidence, run)
     select 'bench:' || n, 'mismatch', (array['critical', 'high', 'warning'])[1 + n / 50 % 3], 'order', ${idSql("order", "n")},
       '[{"field": "total", "service": 2900, "mirror": 2400}]', 500, 'usd', state, at, at,
       case when state = 'healed' then at + interval '1 day' end, 'missed_webhook', '{"mode": "nightly"}',
       (select max(id) from reconcile.runs)
     from generate_series(50, ${orders}, 50) n, lateral (select ${at} as at,
       case when n % 2500 = 0 then 'open' when n % 5000 = 50 then 'acknowledged' else 'healed' end as state) a`,
    `update inbox.progress set state = 'dead', reason = 'the order could not be read', attempts = 12
     where seq % ${Math.max(50, events / 200)} = 7`,
    `update inbox.progress set state = 'failed', reason = 'not tried: a lock was held', next_attempt_at = ${day} + interval '1 hour'
     where seq % ${Math.max(50, events / 100)} = 11`,
    `insert into receiver.answers_by_minute (minute, reason, times)
     select minute, reason, 10 from generate_series(${day} - interval '7 days', ${day}, interval '1 minute') minute,
       unnest(array['accepted', 'duplicate', 'no_match']) reason`,
    `insert into dispatch.handlers (name, position) values ('receipts', 0), ('warehouse', 0)`,
    `insert into dispatch.runs (handler, seq, resource, id, kind, change, is_first, state, failed_at, error)
     select name, n, 'order', ${idSql("order", "n")}, 'order.paid', '{}', true, case when n % 100 = 1 then 'dead' else 'waiting' end,
       case when n % 100 = 1 then ${day} end, case when n % 100 = 1 then 'Error: 550 user unknown' end
     from unnest(array['receipts', 'warehouse']) name, generate_series(1, ${Math.ceil(orders / 100)}) n`,
    `insert into people.accounts (email, roles)
     select 'person-' || n || '@example.com', array['support'] from generate_series(1, 200) n`,
    `insert into people.audit (at, actor, via, action, subject_kind, subject_id)
     select ${at}, 'person-' || n % 200 || '@example.com', 'dashboard', 'case.changed', 'dunning', ${idSql("order", "n")}
     from generate_series(20, ${orders}, 20) n`,
    `insert into people.cases (subject_kind, subject_id, assignee, changed_at)
     select kind, ${idSql("order", "n")}, (select min(id) from people.accounts), ${day}
     from generate_series(100, ${orders}, 100) n, unnest(array['dunning', 'chargeback']) kind`,
    `insert into reconcile.endpoints (id, url) values ('endpoint-1', 'http://127.0.0.1:9/webhooks')`,
    `insert into alerts.silences (rule, up_to_severity, began_at, ends_at, began_by)
     values ('refund_large', 'info', ${day}, 'infinity', 'ada@example.com')`,
  ];
  for (const statement of statements) await client.query(statement);
  await client.query("vacuum analyze");
}
