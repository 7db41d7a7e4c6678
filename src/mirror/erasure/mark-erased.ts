import type { Knex } from "knex";
import { errorCode } from "../../platform/postgres-errors.ts";

const waitSeconds = 5;
const tries = 12;
const lockNotAvailable = "55P03";

/** Whether the mirror, its history, or an earlier erasure knows the customer. Reads the whole history of a stranger. */
export async function isCustomerKnown(db: Knex, customerId: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { known: boolean }[] }>(
    `select exists (select from mirror.customers where id = :customerId)
       or exists (select from mirror.erasures where customer_id = :customerId)
       or exists (select from mirror.orders where customer_id = :customerId)
       or exists (select from mirror.subscriptions where customer_id = :customerId)
       or exists (select from mirror.transactions where customer_id = :customerId)
       or exists (select from mirror.unbelieved
                  where data->>'customer_id' = :customerId or (resource = 'customer' and id = :customerId))
       or exists (select from mirror.versions where resource = 'customer' and id = :customerId)
       or exists (select from mirror.versions where data->>'customer_id' = :customerId) as known`,
    { customerId },
  );
  return rows[0]?.known === true;
}

/**
 * From here on everything that is written about the person is redacted (`redactErased`, redact-arrivals.ts), and no
 * message names them: waits until no writer is under way that began before. Opens its own transactions. Idempotent.
 */
export async function markErased(db: Knex, customerId: string): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      await db.transaction((trx) => mark(trx, customerId));
      return;
    } catch (error) {
      if (errorCode(error) !== lockNotAvailable || n >= tries) throw error;
    }
  }
}

async function mark(trx: Knex.Transaction, customerId: string): Promise<void> {
  // Every writer reads this table, so that the lock is had when the last of them has ended. A short wait for it, since new
  // writers queue behind.
  await trx.raw(`set local lock_timeout = '${waitSeconds}s'`);
  await trx.raw("lock table mirror.erasures in access exclusive mode");
  await trx.raw(
    `insert into mirror.erasures (customer_id) values (?)
     on conflict (customer_id) do update set last_at = now()`,
    [customerId],
  );
}
