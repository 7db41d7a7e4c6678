import type { Knex } from "knex";

/** By which later events about an erased person are known, where they name an address and no customer. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    -- Of this database alone, so that hashes say nothing to whoever has them without it.
    create table mirror.erasure_key (
      is_only boolean primary key default true check (is_only),
      key bytea not null
    );
    insert into mirror.erasure_key (key) values (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
    create table mirror.erased_contacts (
      hash bytea primary key,
      customer_id text collate "C" not null references mirror.erasures (customer_id)
    );
    comment on table mirror.erased_contacts is
      'E-mail addresses and phone numbers of erased people, as keyed hashes: never the addresses themselves.';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw("drop table mirror.erased_contacts, mirror.erasure_key");
}
