import type { Knex } from "knex";

/** Signing secrets, encrypted with the key that `key_id` names, and the table that readiness writes to. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create schema receiver;

    create table receiver.secrets (
      id text primary key,
      ciphertext bytea not null,
      key_id text not null,
      not_before timestamptz,
      not_after timestamptz,
      created_at timestamptz not null default now(),
      last_used_at timestamptz,
      retired_at timestamptz,
      note text
    );

    -- "Postgres takes an insert" is proved by an insert that is rolled back.
    create table receiver.probes (at timestamptz not null);
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop schema receiver cascade`);
}
