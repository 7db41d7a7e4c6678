import type { Knex } from "knex";

/**
 * Where somebody was erased, each batch of events asks whether an address belongs to anybody else now. The expressions
 * are those of src/mirror/erasure/erased-people.ts. And storm items keep no advice: the alert's facts have it.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create index customers_email on mirror.customers (lower(email)) where email is not null;
    create index customers_phone on mirror.customers (('+' || regexp_replace(phone, '\\D', '', 'g')))
      where phone is not null;
    alter table alerts.storm_items drop column advice;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop index mirror.customers_email;
    drop index mirror.customers_phone;
    alter table alerts.storm_items add column advice text not null default '';
    alter table alerts.storm_items alter column advice drop default;
  `);
}
