import type { Knex } from "knex";
import {
  type Account,
  type AccountChange,
  type NewAccount,
  changeAccount,
  createAccount,
} from "./accounts.ts";
import { type Actor, type RecordedAct, recordAct } from "./audit.ts";
import { LastAdmin, takesLastAdmin } from "./last-admin.ts";
import type { Role } from "./permissions.ts";
import { type Revoking, revoke } from "./revoke.ts";
import { createSignInLink } from "./sign-in-links.ts";

/** Adds an account, with its record. Throws `UsageError` if there is one of that address. */
export async function addAccount(
  trx: Knex.Transaction,
  actor: Actor,
  account: NewAccount,
): Promise<Account> {
  const added = await createAccount(trx, account);
  const after = { roles: account.roles };
  await recordAct(trx, actor, { action: "account.added", subject: subjectOf(added), after });
  return added;
}

/** The change of an account and its record in the audit; `revocations` says by its action which credentials end. */
export interface AccountDecision {
  change: AccountChange;
  act: Omit<RecordedAct, "subject"> & { action: Extract<Revoking, `account.${string}`> };
}

/**
 * Changes an account, with its record. Throws `LastAdmin` where nobody with the role admin would be left. Needs a
 * transaction.
 */
export async function decideAccount(
  trx: Knex.Transaction,
  actor: Actor,
  account: Pick<Account, "id" | "email">,
  { change, act }: AccountDecision,
): Promise<void> {
  if (await takesLastAdmin(trx, account.id, change)) {
    throw new LastAdmin(
      `${account.email} is the only one with the role admin, so nothing was done. Give the role to somebody else first.`,
    );
  }
  await changeAccount(trx, account.id, change);
  await revoke(trx, account.id, act.action);
  await recordAct(trx, actor, { ...act, subject: subjectOf(account) });
}

export const newRoles = (account: Account, roles: readonly Role[]): AccountDecision => ({
  change: { roles },
  act: {
    action: "account.roles-changed",
    before: { roles: account.roles },
    after: { roles },
  },
});

/** Nobody signs in with it any more, and who is signed in is out at once. */
export const disabling = (now: Date): AccountDecision => ({
  change: { isDisabled: true, now },
  act: { action: "account.disabled" },
});

export const enabling = (now: Date): AccountDecision => ({
  change: { isDisabled: false, now },
  act: { action: "account.enabled" },
});

/** Makes a link that signs a person in once, with its record. Returns its token. Needs a transaction. */
export async function makeSignInLink(
  trx: Knex.Transaction,
  actor: Actor,
  account: Pick<Account, "id" | "email">,
  now: Date,
): Promise<string> {
  await recordAct(trx, actor, { action: "sign-in-link.made", subject: subjectOf(account) });
  return createSignInLink(trx, account.id, now);
}

const subjectOf = ({ email }: Pick<Account, "email">) => ({ kind: "account", id: email });
