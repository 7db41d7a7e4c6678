import type { Knex } from "knex";

/**
 * A final number is that of an entry that never changes: of a month that is closed. A ledger that refuses the numbers that
 * it has would lose what is learned of a day later.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.journal;

    -- One entry a currency and day, balanced, since every movement is booked on two sides at once. Final, with a number
    -- that is the same in every repeat, is what is booked in a month that is closed, or before p_final_until: what
    -- the close reads that freezes it. What is learned after a close has a line for each day it belongs to.
    create function reports.journal(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null,
                                    p_accounts jsonb default reports.default_accounts(),
                                    p_final_until timestamptz default null)
    returns table (number text, status text, date date, account text, description text, debit bigint, credit bigint,
                   currency text, line bigint)
    language sql stable parallel safe as $$
      with final as (
        select greatest(p_final_until, max(c.to_at)) as until from reports.closes c
        where c.closed_at <= coalesce(p_as_of, 'infinity')
      ), posted as (
        select (b.booked_at at time zone p_zone)::date as day, b.currency, b.kind,
               coalesce(b.booked_at < f.until, false) as is_final,
               case when b.is_late then (b.at at time zone p_zone)::date end as happened_on, b.amount < 0 as is_out,
               count(*) as n, abs(sum(b.amount))::bigint as amount
        from reports.booked_movements(p_as_of) b cross join final f
        where b.booked_at >= p_from and b.booked_at < p_to and b.amount <> 0
        group by 1, 2, 3, 4, 5, 6
      ), sided as (
        select p.*, k.place, k.label, side.is_debit,
               case when side.is_clearing then p_accounts->>'clearing' else p_accounts->>k.account end as account
        from posted p
        join (values ('sale', 1, 'sales', 'sales'), ('refund', 2, 'refunds', 'refunds'),
                     ('chargeback', 3, 'chargebacks', 'chargebacks'),
                     ('reversal', 4, 'chargebacks dismissed', 'chargebacks')) as k(kind, place, label, account) using (kind)
        cross join lateral (values (true, not p.is_out), (false, p.is_out)) as side(is_clearing, is_debit)
      )
      select case when s.is_final then 'TH-' else 'PRELIM-' end || to_char(s.day, 'YYYYMMDD') || '-' || upper(s.currency),
             case when s.is_final then 'final' else 'preliminary' end, s.day, s.account,
             s.n || ' ' || s.label || coalesce(' of ' || to_char(s.happened_on, 'YYYY-MM-DD')
               || ', learned after its month was closed', ''),
             case when s.is_debit then s.amount else 0 end, case when s.is_debit then 0 else s.amount end, s.currency,
             row_number() over (partition by s.day, s.currency, s.is_final
               order by s.happened_on nulls first, s.place, s.is_out, s.is_debit desc)
      from sided s
    $$;
  `);
}

export function down(): Promise<void> {
  throw new Error(
    "preliminary entries cannot be taken out again: restore the database from a backup",
  );
}
