import type { Knex } from "knex";
import type { Clock } from "../../platform/clock.ts";
import type { EncryptedText, Encryption } from "../../platform/encryption.ts";
import { UsageError } from "../../platform/errors.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import {
  type Account,
  type AccountChange,
  changeAccount,
  createAccount,
  findAccount,
  findAccountById,
  readEmail,
} from "./accounts.ts";
import { type Act, ActRefused, type ActSubject, actOn, recordOf } from "./act.ts";
import type { Actor, RecordedAct } from "./audit.ts";
import { type Field, type Fields, flag, listOf, oneOf, reference } from "./fields.ts";
import { lockAdmins, takesLastAdmin } from "./last-admin.ts";
import { type Role, roleNames } from "./permissions.ts";
import { type Revoking, revoke } from "./revoke.ts";
import { ownerOfSession } from "./sessions.ts";
import { createSignInLink } from "./sign-in-links.ts";
import { newTotpSecret } from "./totp.ts";

/** Roles, possibly none: such a person signs in and sees only their own account. */
const rolesField = listOf(oneOf(roleNames));

const emailField: Field<string> = {
  read: (typed) => emailIn(typed) ?? undefined,
  wanted: "an e-mail address, such as ada@example.com",
  longest: 255,
};

function emailIn(typed: string): string | null {
  try {
    return readEmail(typed);
  } catch (error) {
    if (error instanceof UsageError) return null;
    throw error;
  }
}

/** An account, by its number or its e-mail address. Those that can change roles are locked before it. */
const accountSubject: ActSubject<Account> = {
  kind: "account",
  async lock(trx, given) {
    await lockAdmins(trx);
    const email = emailIn(given);
    const named = email === null ? null : await findAccount(trx, email);
    const id = named?.id ?? (/^\d{1,15}$/.test(given) ? Number(given) : null);
    return id === null ? null : findAccountById(trx, id, "locked");
  },
  idOf: ({ email }) => email,
  version: ({ version }) => String(version),
};

/** The same for what no state of the account decides. */
const anyAccount: ActSubject<Account> = { ...accountSubject, version: () => "" };

type Changed = Pick<Account, "id" | "email">;

/** Adds a person; refused where an account has that address. */
export const adding: Act<
  { db: Knex; clock: Clock; passwordHash: (email: string) => Promise<string | null> },
  { email: string; role: Role[]; link: boolean },
  Changed & { roles: readonly Role[]; token: string | null }
> = {
  name: "account.added",
  permission: "account:write",
  fields: { email: emailField, role: rolesField, link: flag },
  async run({ db, clock, passwordHash }, call) {
    const { email, role: roles, link } = call.input;
    const account = { email, roles, passwordHash: await passwordHash(email) };
    return inTransaction(db, async (trx) => {
      const { id } = await createAccount(trx, account);
      const subject = { kind: "account", id: email };
      await recordOf(adding, call)(trx, { subject, after: { roles } });
      if (!link) return { id, email, roles, token: null };
      await recordOf(linking, call)(trx, { subject });
      return { id, email, roles, token: await createSignInLink(trx, id, clock.now()) };
    });
  },
};

interface AccountDecision {
  change: AccountChange;
  record?: Pick<RecordedAct, "before" | "after">;
}

/**
 * A change of an account. `revocations` lists by its name the credentials that end. Refused where no account with the
 * role admin would be left.
 */
const changing = <Input extends { account: string }, Deps extends object>(
  name: Extract<Revoking, `account.${string}`>,
  fields: Fields<Input>,
  decide: (account: Account, call: { input: Input; actor: Actor }, deps: Deps) => AccountDecision,
): Act<Deps & { db: Knex }, Input, Changed> =>
  actOn(accountSubject, "account", {
    name,
    permission: "account:write",
    fields,
    async change(trx, account, call, deps: Deps) {
      const { change, record = {} } = decide(account, call, deps);
      const { id, email } = account;
      if (await takesLastAdmin(trx, id, change)) {
        throw new ActRefused(
          "hindered",
          `${email} is the only one with the role admin, so nothing was done. Give the role to another person first.`,
        );
      }
      await changeAccount(trx, id, change);
      await revoke(trx, id, name);
      return { done: { id, email }, record };
    },
  });

const ofAccount = { account: reference };

export const changingRoles = changing(
  "account.roles-changed",
  { account: reference, role: rolesField },
  ({ roles: before }, { input: { role: roles } }) => ({
    change: { roles },
    record: { before: { roles: before }, after: { roles } },
  }),
);

/** The account can no longer sign in, and its sessions end. */
export const disabling = changing("account.disabled", ofAccount, ({ id }, { actor }, { clock }: { clock: Clock }) => {
  if (id === actor.accountId) {
    throw new ActRefused(
      "hindered",
      "You cannot disable your own account. Another person with the role admin has to do it.",
    );
  }
  return { change: { isDisabled: true, now: clock.now() } };
});

export const enabling = changing("account.enabled", ofAccount, (_, __, { clock }: { clock: Clock }) => ({
  change: { isDisabled: false, now: clock.now() },
}));

export const changingPassword = changing(
  "account.password-changed",
  ofAccount,
  (_, __, { passwordHash }: { passwordHash: string }) => ({ change: { passwordHash } }),
);

/** `totp`: the app's secret, encrypted. */
const addingTotp = changing("account.totp-added", ofAccount, (_, __, { totp }: { totp: EncryptedText }) => ({
  change: { totp },
}));

const removingTotp = changing("account.totp-removed", ofAccount, () => ({
  change: { totp: null },
}));

/** One of the two: requires a code by a new secret, which it returns, or with `remove` requires none from now on. */
export const changingTotp: Act<
  { db: Knex; encryption: () => Promise<Encryption> },
  { account: string; remove: boolean },
  { email: string; secret: string | null }
> = {
  ...addingTotp,
  fields: { ...ofAccount, remove: flag },
  async run({ db, encryption }, call) {
    if (call.input.remove) return { ...(await removingTotp.run({ db }, call)), secret: null };
    const secret = newTotpSecret();
    return { ...(await addingTotp.run({ db, totp: (await encryption()).encrypt(secret) }, call)), secret };
  },
};

/** A link that signs a person in once. */
export const linking = actOn(anyAccount, "account", {
  name: "sign-in-link.made",
  permission: "account:write",
  fields: ofAccount,
  async change(trx, { id, email, disabledAt }, _, { clock }: { clock: Clock }) {
    if (disabledAt !== null) {
      throw new ActRefused("hindered", `${email} is disabled. Enable the account first.`);
    }
    const token = await createSignInLink(trx, id, clock.now());
    return { done: { id, email, token }, record: {} };
  },
});

/** All sessions of a person but the one from which it is done. */
export const endingSessions = actOn(anyAccount, "account", {
  name: "session.ended",
  permission: "account:write",
  fields: ofAccount,
  async change(trx, { id, email }, _, { ownSession }: { ownSession: string | null }) {
    const ended = await revoke(trx, id, "other-sessions.ended", ownSession);
    return { done: { id, email, ended }, record: { after: { ended } } };
  },
});

/** Ends one session, of any person. */
export const endingSession: Act<{ db: Knex }, { session: string }, { email: string }> = {
  name: "session.ended",
  permission: "account:write",
  fields: { session: reference },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { session } = call.input;
      const owner = await ownerOfSession(trx, session);
      const ended = owner === null ? 0 : await revoke(trx, owner.id, "session.ended", session);
      if (owner === null || ended === 0) {
        throw new ActRefused("unknown", "This session has ended already.");
      }
      const subject = { kind: "account", id: owner.email };
      await recordOf(endingSession, call)(trx, { subject, after: { ended } });
      return { email: owner.email };
    }),
};
