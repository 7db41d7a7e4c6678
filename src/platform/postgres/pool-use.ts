import type { Knex } from "knex";
import type { Pool } from "pg";

export interface PoolUse {
  used: number;
  idle: number;
  /** Number of callers waiting for a connection. */
  waiting: number;
  most: number;
}

export function useOfKnex(db: Knex): PoolUse {
  const { pool } = db.client as { pool?: TarnPool };
  // A pool that was destroyed is gone.
  if (pool === undefined) return { used: 0, idle: 0, waiting: 0, most: 0 };
  return {
    used: pool.numUsed(),
    idle: pool.numFree(),
    waiting: pool.numPendingAcquires(),
    most: pool.max,
  };
}

/** The part of knex's pool that knex's types leave out. */
interface TarnPool {
  max: number;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

export function useOfPool(pool: Pool): PoolUse {
  const { totalCount, idleCount, waitingCount, options } = pool;
  return {
    used: totalCount - idleCount,
    idle: idleCount,
    waiting: waitingCount,
    most: options.max,
  };
}
