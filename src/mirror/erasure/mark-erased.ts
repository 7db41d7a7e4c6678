import type { Knex } from "knex";
import { errorCode } from "../../platform/postgres-errors.ts";
import { contactsOf } from "./erase-history.ts";
import { keepContacts } from "./erased-people.ts";

const waitSeconds = 5;
const tries = 12;
const lockNotAvailable = "55P03";

/**
 * From here on everything that is written about the person is redacted (redact-states.ts, redact-arrivals.ts): waits
 * until no writer is under way that began before. Keeps hashes of the person's addresses while they are known. Opens its
 * own transactions. Idempotent. False when neither the mirror nor an earlier erasure knows the customer.
 */
export async function markErased(db: Knex, customerId: string): Promise<boolean> {
  for (let n = 1; ; n++) {
    try {
      const isKnown = await db.transaction((trx) => mark(trx, customerId));
      if (!isKnown) return false;
      break;
    } catch (error) {
      if (errorCode(error) !== lockNotAvailable || n >= tries) throw error;
    }
  }
  // Apart from the lock, under which nobody can write: this reads the whole history.
  await db.transaction(async (trx) => {
    await keepContacts(trx, customerId, await contactsOf(trx, customerId));
  });
  return true;
}

async function mark(trx: Knex.Transaction, customerId: string): Promise<boolean> {
  // Every writer reads this table, so that the lock is had when the last of them has ended. A short wait for it, since new
  // writers queue behind.
  await trx.raw(`set local lock_timeout = '${waitSeconds}s'`);
  await trx.raw("lock table mirror.erasures in access exclusive mode");
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `insert into mirror.erasures (customer_id)
     select :customerId where exists (select from mirror.customers where id = :customerId)
       or exists (select from mirror.orders where customer_id = :customerId)
       or exists (select from mirror.subscriptions where customer_id = :customerId)
       or exists (select from mirror.versions where resource = 'customer' and id = :customerId)
       or exists (select from mirror.erasures where customer_id = :customerId)
     on conflict (customer_id) do update set last_at = now() returning customer_id`,
    { customerId },
  );
  return rows.length > 0;
}
