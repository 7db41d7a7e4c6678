import type { Knex } from "knex";
import type { Role } from "./permissions.ts";

/** The part of an account's change that matters here. */
type Change = { roles: readonly Role[] } | { isDisabled: boolean } | { passwordHash: string } | { totp: unknown };

/**
 * Locks the accounts that can add people and change roles, until the transaction ends, so that two people cannot take
 * the role from each other at the same time. Must precede the lock of any other account, which rules out a deadlock.
 * Returns their ids.
 */
export async function lockAdmins(trx: Knex.Transaction): Promise<number[]> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select id from people.accounts where 'admin' = any(roles) and disabled_at is null order by id for update`,
  );
  return rows.map(({ id }) => Number(id));
}

/**
 * Whether a change of an account would leave no account that can add people or change roles. Locks as `lockAdmins`
 * does.
 */
export async function takesLastAdmin(trx: Knex.Transaction, id: number, change: Change): Promise<boolean> {
  const takesAdmin = "roles" in change ? !change.roles.includes("admin") : "isDisabled" in change && change.isDisabled;
  if (!takesAdmin) return false;
  const admins = await lockAdmins(trx);
  return admins.length === 1 && admins[0] === id;
}
