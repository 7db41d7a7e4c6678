import type { Knex } from "knex";

/**
 * The version of what an order carries of a transaction gets the entry's own time, after the order's: two entries
 * of one order's `updated_at` are then ordered by it. (`<order's time>|<entry's time>|<Date>|…`; for what a read
 * is certain to have shown as the last state, the order's time stands in both places.)
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    update mirror.transactions t
    set inline_version = left(t.inline_version, 28) || case
        when substr(t.inline_version, 29, 1) <> '-'
          and substr(t.inline_version, 29, 27)::timestamptz
              >= left(t.inline_version, 27)::timestamptz + interval '2 seconds' then left(t.inline_version, 27)
        else coalesce((
          select to_char(max(v.source_updated_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
          from mirror.versions v
          where v.resource = 'transaction.inline' and v.id = t.id
            and v.source_updated_at <= left(t.inline_version, 27)::timestamptz
            and v.content_hash = right(t.inline_version, 32)), left(t.inline_version, 27))
        end || substr(t.inline_version, 28)
    where t.inline_version <> ''`);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    update mirror.transactions
    set inline_version = left(inline_version, 28) || substr(inline_version, 57) where inline_version <> ''`);
}
