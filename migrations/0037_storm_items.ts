import type { Knex } from "knex";

/** What is told of the alerts of a storm, and how: none of them is only written down. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table alerts.storm_items (
      channel text not null,
      alert_id bigint not null references alerts.alerts (id),
      stage text not null,
      -- The incident that stands for the crowd.
      storm_id bigint not null references alerts.alerts (id),
      -- alone: by itself, at once. at_once: in the next list. at_end: in the list when the storm is over, or an hour later.
      -- over: it waited for a list and was resolved meanwhile.
      told_how text not null check (told_how in ('alone', 'at_once', 'at_end', 'over')),
      -- What to do about it, which no message of its own says.
      advice text not null,
      queued_at timestamptz not null default now(),
      -- Null: it waits for its list.
      told_at timestamptz,
      primary key (channel, alert_id, stage)
    );
    comment on table alerts.storm_items is 'What is told of the alerts of a storm, and how.';
    create index storm_items_waiting on alerts.storm_items (storm_id) where told_at is null;
    create index storm_items_alert on alerts.storm_items (alert_id);
    create index storm_items_storm on alerts.storm_items (storm_id, told_how, queued_at);

    alter table alerts.outbox add column is_list boolean not null default false;
    comment on column alerts.outbox.is_list is
      'Lists other alerts than the one it belongs to: still worth telling when that one is over.';

    -- Declines are counted by the time of the charge.
    create index history_at on alerts.history (at);
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop index alerts.history_at;
    alter table alerts.outbox drop column is_list;
    drop table alerts.storm_items`);
}
