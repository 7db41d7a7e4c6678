import type { Knex } from "knex";

/**
 * As of a time each row of the mirror is looked up in the history, which the planner takes for so dear that it no longer sees what
 * a join costs beside it: it compared every failed order with every past due subscription. Each side is made by itself now.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create or replace function reports.past_due_aging(p_from timestamptz, p_to timestamptz, p_zone text,
                                                      p_as_of timestamptz default null)
    returns table (currency text, days_past_due text, orders bigint, amount bigint, next_retry_at timestamptz)
    language sql stable parallel safe as $$
      with failed as materialized (
        select o.id, o.subscription_id, o.currency, o.total, ((p_to at time zone p_zone) - interval '1 microsecond')::date
                 - (o.created_at at time zone p_zone)::date as days
        from reports.orders(p_as_of) o
        where o.status = 'failed' and o.subscription_cycle > 1 and o.created_at < p_to
      ), past_due as materialized (
        select s.id from reports.subscription_states(p_as_of) s where s.is_last and s.status = 'past_due'
      ), retries as materialized (
        select r.id, r.next_retry_at from reports.order_retries(p_as_of) r
      )
      select f.currency, case when f.days <= 7 then '0-7' when f.days <= 14 then '8-14' when f.days <= 30 then '15-30'
                              when f.days <= 60 then '31-60' else '61+' end,
             count(*), sum(f.total)::bigint, min(r.next_retry_at)
      from failed f join past_due p on p.id = f.subscription_id left join retries r on r.id = f.id
      group by 1, 2
    $$;`);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    create or replace function reports.past_due_aging(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null)
    returns table (currency text, days_past_due text, orders bigint, amount bigint, next_retry_at timestamptz)
    language sql stable parallel safe as $$
      with due as (
        select o.id, o.currency, o.total, ((p_to at time zone p_zone) - interval '1 microsecond')::date
                 - (o.created_at at time zone p_zone)::date as days
        from reports.orders(p_as_of) o
        join reports.subscription_states(p_as_of) s on s.id = o.subscription_id and s.is_last
        where o.status = 'failed' and o.subscription_cycle > 1 and s.status = 'past_due' and o.created_at < p_to
      )
      select d.currency, case when d.days <= 7 then '0-7' when d.days <= 14 then '8-14' when d.days <= 30 then '15-30'
                              when d.days <= 60 then '31-60' else '61+' end,
             count(*), sum(d.total)::bigint, min(r.next_retry_at)
      from due d left join reports.order_retries(p_as_of) r on r.id = d.id
      group by 1, 2
    $$;`);
}
