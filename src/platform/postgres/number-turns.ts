/** A sequence whose numbers a reader follows. */
export interface NumberTurns {
  sequence: string;
  /**
   * Distinguishes its locks from all others: the upper 16 bits of their keys. The function that reads them has it, too.
   */
  lockClass: number;
}

/**
 * SQL of a value by which a writer announces that its numbers are still to be committed
 * (mirror/changes/readable-until.sql). The statement must evaluate it before it takes its first number. Locks no other
 * session out, and ends with the transaction.
 */
export const takeTurn = ({ sequence, lockClass }: NumberTurns): string =>
  `pg_advisory_xact_lock_shared((${lockClass}::bigint << 48) | coalesce(pg_sequence_last_value('${sequence}'), 0))`;
