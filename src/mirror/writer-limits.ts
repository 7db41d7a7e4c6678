import type { Knex } from "knex";

/**
 * Cuts a writer of the mirror off after 30 s. As-of reports rely on it: what was recorded more than a minute ago
 * is committed, or never will be. (`transaction_timeout` came with PostgreSQL 17; before, every statement and
 * every pause between two are cut off apart.) Idempotent within a transaction.
 */
export async function limitWriter(trx: Knex.Transaction): Promise<void> {
  await trx
    .raw(
      `select set_config('statement_timeout', '30s', true), set_config('lock_timeout', '10s', true),
         set_config('idle_in_transaction_session_timeout', '30s', true),
         case when current_setting('server_version_num')::int >= 170000
              then set_config('transaction_timeout', '30s', true) end`,
    )
    .options({ name: "mirror-limits" });
}
