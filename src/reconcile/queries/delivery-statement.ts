import type { Knex } from "knex";

/** What became of the changes of one kind that the service announces by an event. */
export interface DeliveryLine {
  /** `order`, `customer` or `subscription`. */
  family: string;
  /** The documented event. */
  event: string;
  /** Changes for which the service must have sent it. */
  announced: number;
  /** … of which an event is in the inbox, in time or late. */
  received: number;
  /** … only after `lateAfterSeconds`, or after a read had shown the change. */
  late: number;
  /** … not at all. */
  missed: number;
}

export interface DeliveryWindow {
  /** Service time, half-open. */
  from: Date;
  to: Date;
  lateAfterSeconds: number;
}

export interface DeliveryStatement {
  lines: DeliveryLine[];
  /** What this cannot say. */
  note: string;
}

/**
 * The last change of each object with the event that documents it (spec, Events). A chargeback's event has no name there:
 * any event about the order stands for it. Kinds of changes without an event (past due, completed, voided) are not
 * counted, nor a subscription's update that a renewal or cancellation covers.
 */
const changes = `
  select 'order' as family, id, content_hash, source_updated_at as at,
         case when status in ('partially_refunded', 'refunded') then 'order.refunded'
              when status like 'chargeback%' then 'order.(chargeback)'
              when status = 'pending' then 'order.created'
              when status in ('succeeded', 'failed') then 'order.' || status end as event
  from mirror.orders where version <> ''
  union all
  select 'customer', id, content_hash, created_at, 'customer.created' from mirror.customers where version <> ''
  union all
  select 'subscription', id, content_hash, source_updated_at,
         case when status = 'canceled' then 'subscription.canceled'
              when status not in ('active', 'failed') then null
              when current_billing_cycle <= 1 and source_updated_at < created_at + interval '5 seconds'
                then 'subscription.created'
              when current_billing_cycle > 1 and current_period_start >= source_updated_at - interval '1 hour'
                then 'subscription.charged'
              when status = 'active' then 'subscription.updated' end
  from mirror.subscriptions where version <> ''`;

/**
 * How the first look at the present state (of a customer, at any state) came about; a first fill makes no statement about deliveries. An event may be
 * dated a moment before the state that it shows.
 */
const statement = `
  with changed as (
    select c.* from (${changes}) c
    where c.event is not null and c.at >= :from and c.at < :to
  ), traced as (
    select c.family, c.event, c.at, arrived.received_at, v.cause, v.recorded_at,
           coalesce(v.cause = 'import' or exists (
             select from reconcile.runs r
             where r.first_fill and v.cause = 'reconcile:' || r.id), false) as is_fill
    from changed c
    left join lateral (
      select v.cause, v.recorded_at from mirror.versions v
      where v.resource = c.family and v.id = c.id
        and (c.family = 'customer' or (v.source_updated_at = c.at and v.content_hash = c.content_hash))
      order by v.seq limit 1
    ) v on true
    left join lateral (
      select min(r.received_at) as received_at
      from inbox.progress p join inbox.receipts r using (seq)
      where p.resource_type = c.family and p.resource_id = c.id
        and r.event_created_at >= c.at - interval '2 seconds'
        and (r.type = c.event or c.event = 'order.(chargeback)')
    ) arrived on true
  )
  select family, event, count(*) as announced, count(received_at) as received,
         count(*) filter (where received_at > at + make_interval(secs => :lateAfterSeconds)
                            or (received_at > recorded_at and cause not like 'event:%')) as late,
         count(*) filter (where received_at is null) as missed
  from traced where not (is_fill and received_at is null)
  group by family, event order by family, event`;

const note =
  "Lists show the last state of an object only: of several changes between two looks one is counted.";

/**
 * What changed at the service in a window, by the mirror after a complete run, against what the inbox received. One
 * statement; only reads. As good as the coverage of the window: print both.
 */
export async function deliveryStatement(
  db: Knex,
  { from, to, lateAfterSeconds }: DeliveryWindow,
): Promise<DeliveryStatement> {
  const { rows } = await db.raw<{ rows: Record<keyof DeliveryLine, string>[] }>(statement, {
    from,
    to,
    lateAfterSeconds,
  });
  const lines = rows.map(({ family, event, ...counts }) => ({
    family,
    event,
    announced: Number(counts.announced),
    received: Number(counts.received),
    late: Number(counts.late),
    missed: Number(counts.missed),
  }));
  return { lines, note };
}
