import type { Knex } from "knex";

export interface WriterLimits {
  statementMs: number;
  /** To wait for one lock. */
  lockMs: number;
  /** From the first write on. */
  transactionMs: number;
}

/**
 * A statement is cut off well before its transaction, so that a slow one is known by its own error (57014) and the
 * connection stays.
 */
export const defaultWriterLimits: WriterLimits = {
  statementMs: 20_000,
  lockMs: 10_000,
  transactionMs: 30_000,
};

/**
 * Cuts a writer of the mirror off after 30 s. As-of reports rely on it: what was recorded more than a minute ago
 * is committed, or never will be. (`transaction_timeout` came with PostgreSQL 17; before, every statement and
 * every pause between two are cut off apart.) Idempotent within a transaction.
 */
export async function limitWriter(
  trx: Knex.Transaction,
  { statementMs, lockMs, transactionMs }: WriterLimits,
): Promise<void> {
  await trx
    .raw(
      `select set_config('statement_timeout', ?::text, true), set_config('lock_timeout', ?::text, true),
         set_config('idle_in_transaction_session_timeout', ?::text, true),
         case when current_setting('server_version_num')::int >= 170000
              then set_config('transaction_timeout', ?::text, true) end`,
      [statementMs, lockMs, transactionMs, transactionMs],
    )
    .options({ name: "mirror-limits" });
}
