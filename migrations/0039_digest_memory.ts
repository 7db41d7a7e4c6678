import type { Knex } from "knex";

/**
 * A digest item stays when its digest was written: whoever was asked there to collect an amount hears, too, when it is
 * paid after all.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table alerts.digest_items add column told_at timestamptz;
    comment on column alerts.digest_items.told_at is 'When its digest was written; null: it waits for the next one.';
    create index digest_items_alert on alerts.digest_items (alert_id);
    create index digest_items_waiting on alerts.digest_items (channel) where told_at is null;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    delete from alerts.digest_items where told_at is not null;
    drop index alerts.digest_items_alert, alerts.digest_items_waiting;
    alter table alerts.digest_items drop column told_at`);
}
