import type { Knex } from "knex";
import { type Account, createAccount, findAccount } from "./accounts.ts";
import { roleNames } from "./permissions.ts";

/** The account of the person who runs everything on one machine and has access to all of it anyway. */
const ownersEmail = "owner@localhost";

/** The account behind the link that `tallyhook start` prints: without a password, with every role. Needs a transaction. */
export async function accountOfOwner(trx: Knex.Transaction): Promise<Account> {
  const known = await findAccount(trx, ownersEmail);
  return known ?? createAccount(trx, { email: ownersEmail, roles: roleNames, passwordHash: null });
}
