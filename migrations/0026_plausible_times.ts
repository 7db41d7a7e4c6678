import type { Knex } from "knex";

/** States that are dated later than they can be are kept apart; and what a person had written, whatever its time. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table mirror.unbelieved (
      resource text collate "C" not null,
      id text collate "C" not null,
      source_updated_at timestamptz not null,
      content_hash text collate "C" not null,
      recorded_at timestamptz not null default clock_timestamp(),
      observed_at timestamptz,
      cause text not null,
      data jsonb not null,
      primary key (resource, id, source_updated_at, content_hash)
    );
    create index unbelieved_object on mirror.unbelieved (id);
    comment on table mirror.unbelieved is
      'States that are dated more than an hour after they came: no row shows them, and no report reads them.';

    create table mirror.heals (
      seq bigint generated always as identity primary key,
      resource text collate "C" not null,
      id text collate "C" not null,
      healed_at timestamptz not null default clock_timestamp(),
      healed_by text not null,
      reason text not null,
      -- SHA-256 of the row as JSON; null where there was none.
      before_sha256 text,
      after_sha256 text not null,
      -- Names alone: values may be personal.
      changed_columns text[] not null
    );
    create index heals_object on mirror.heals (id);
    comment on table mirror.heals is 'Rows that a person had written as the service shows the object, append-only.';
    create function mirror.refuse_heal_change() returns trigger language plpgsql as $$
    begin
      raise exception 'mirror.heals is append-only (% refused)', lower(tg_op) using errcode = 'restrict_violation';
    end $$;
    create trigger heals_append_only before update or delete or truncate on mirror.heals
      for each statement execute function mirror.refuse_heal_change();
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop table mirror.heals;
    drop function mirror.refuse_heal_change;
    drop table mirror.unbelieved;
  `);
}
