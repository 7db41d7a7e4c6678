import type { Knex } from "knex";
import { ActRefused } from "./act.ts";
import type { EncryptedText } from "../../platform/encryption.ts";
import { UsageError } from "../../platform/errors.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { lockAdmins, takesLastAdmin } from "./last-admin.ts";
import { type Role, isRole } from "./permissions.ts";

export interface Account {
  id: number;
  /** Lower case. */
  email: string;
  roles: readonly Role[];
  /** Grows when roles or password change. */
  version: number;
  hasPassword: boolean;
  hasTotp: boolean;
  /** The OpenID provider of the person; null where there is none. */
  issuer: string | null;
  disabledAt: Date | null;
  createdAt: Date;
}

/** Proofs of a person's identity. Used only for signing in. */
export interface Credentials {
  passwordHash: string | null;
  totp: EncryptedText | null;
  totpLastStep: number | null;
}

/** Letters that are ASCII in lower case alone: an address with one of them is another one, and would become this one. */
const becomesAscii = /[\u0130\u212a]/;

/** Reads an e-mail address as accounts have it. Throws `UsageError`. */
export function readEmail(text: string): string {
  const email = text.trim().toLowerCase();
  const isAddress = /^[^\s@<>"\p{Cc}]{1,64}@[^\s@<>"\p{Cc}]{1,190}$/u.test(email);
  if (!isAddress || becomesAscii.test(text)) {
    throw new UsageError("This is no e-mail address. Use one such as ada@example.com.");
  }
  return email;
}

/** All accounts, by e-mail address. One statement. */
export async function listAccounts(db: Knex): Promise<Account[]> {
  const { rows } = await db.raw<Rows<AccountRow>>(`select ${columns} from people.accounts order by email`);
  return rows.map(accountOf);
}

/** Null for an unknown address. One statement. */
export async function findAccount(db: Knex, email: string): Promise<Account | null> {
  const { rows } = await db.raw<Rows<AccountRow>>(`select ${columns} from people.accounts where email = ?`, [email]);
  return rows[0] === undefined ? null : accountOf(rows[0]);
}

/** Null for an unknown id. `locked`: locks it until the transaction ends. One statement. */
export async function findAccountById(db: Knex, id: number, lock?: "locked"): Promise<Account | null> {
  const { rows } = await db.raw<Rows<AccountRow>>(
    `select ${columns} from people.accounts where id = ?${lock === undefined ? "" : " for update"}`,
    [id],
  );
  return rows[0] === undefined ? null : accountOf(rows[0]);
}

/** Throws `ActRefused` for an unknown address. */
export async function requireAccount(db: Knex, email: string): Promise<Account> {
  const account = await findAccount(db, email);
  if (account === null) throw new ActRefused("unknown", `There is no account "${email}".`);
  return account;
}

/** Null for an unknown address. One statement. */
export async function findCredentials(
  db: Knex,
  email: string,
): Promise<{ account: Account; credentials: Credentials } | null> {
  const { rows } = await db.raw<Rows<AccountRow & CredentialsRow>>(
    `select ${columns}, password_hash, totp_key_id, totp_ciphertext, totp_last_step
     from people.accounts where email = ?`,
    [email],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { totp_key_id: keyId, totp_ciphertext: ciphertext, totp_last_step: step } = row;
  return {
    account: accountOf(row),
    credentials: {
      passwordHash: row.password_hash,
      totp: keyId === null || ciphertext === null ? null : { keyId, ciphertext },
      totpLastStep: step === null ? null : Number(step),
    },
  };
}

export interface NewAccount {
  email: string;
  roles: readonly Role[];
  passwordHash: string | null;
}

/** Throws `UsageError` if there is one of that address. One statement. */
export async function createAccount(
  trx: Knex.Transaction,
  { email, roles, passwordHash }: NewAccount,
): Promise<Account> {
  const { rows } = await trx.raw<Rows<AccountRow>>(
    `insert into people.accounts (email, roles, password_hash) values (?, ?::text[], ?)
     on conflict (email) do nothing returning ${columns}`,
    [email, sqlArray(roles), passwordHash],
  );
  const [row] = rows;
  if (row !== undefined) return accountOf(row);
  throw new ActRefused("hindered", `There is an account ${email} already, so nothing was done.`);
}

/** Changes of an account. Each needs a transaction, with its record in `people.audit`. */
export type AccountChange =
  | { roles: readonly Role[] }
  | { passwordHash: string }
  | { totp: EncryptedText | null }
  | { isDisabled: boolean; now: Date };

/** Changes an account. Its sessions change at their next request (`findSession`). One statement. */
export async function changeAccount(trx: Knex.Transaction, id: number, change: AccountChange): Promise<void> {
  await trx("people.accounts")
    .where({ id })
    .update({ ...columnsOf(change), version: trx.raw("version + 1") });
}

function columnsOf(change: AccountChange): Record<string, unknown> {
  if ("roles" in change) return { roles: [...change.roles] };
  if ("passwordHash" in change) return { password_hash: change.passwordHash };
  if ("isDisabled" in change) return { disabled_at: change.isDisabled ? change.now : null };
  const { totp } = change;
  return {
    totp_key_id: totp?.keyId ?? null,
    totp_ciphertext: totp?.ciphertext ?? null,
    totp_last_step: null,
  };
}

/**
 * Marks a code as used. Returns false if it, or a later one, was used before: also when two concurrent requests bring
 * the same code. One statement.
 */
export async function useTotpStep(db: Knex, id: number, step: number): Promise<boolean> {
  const changed = await db("people.accounts")
    .where({ id })
    .whereRaw("coalesce(totp_last_step < ?, true)", [step])
    .update({ totp_last_step: step });
  return changed > 0;
}

export interface ProviderIdentity {
  issuer: string;
  subject: string;
  email: string;
  roles: readonly Role[];
}

/** The account of a person whom the provider has named. */
export interface ProvidedAccount {
  account: Account;
  isNew: boolean;
  /** The roles before, where they changed. */
  former: readonly Role[] | null;
  /** Whether the provider has withdrawn the role admin, but the account keeps it as the last one. */
  keepsAdmin: boolean;
}

/**
 * The account of a person whom the OpenID provider has named, created on the first sign-in, with the provider's roles;
 * but the last admin keeps that role. An account of the same address that was added by hand becomes this person's if no
 * other person of the provider has it. Throws `UsageError` otherwise. Needs a transaction.
 */
export async function accountOfProvider(
  trx: Knex.Transaction,
  { issuer, subject, email, roles: given }: ProviderIdentity,
): Promise<ProvidedAccount> {
  await lockAdmins(trx);
  const { rows: known } = await trx.raw<Rows<AccountRow>>(
    `select ${columns} from people.accounts
     where (issuer = :issuer and subject = :subject) or (email = :email and issuer is null)
     order by issuer is null limit 1 for update`,
    { issuer, subject, email },
  );
  if (known[0] === undefined) {
    const { rows: made } = await trx.raw<Rows<AccountRow>>(
      `insert into people.accounts (email, roles, issuer, subject) values (?, ?::text[], ?, ?)
       on conflict do nothing returning ${columns}`,
      [email, sqlArray(given), issuer, subject],
    );
    if (made[0] !== undefined) {
      return { account: accountOf(made[0]), isNew: true, former: null, keepsAdmin: false };
    }
    throw new UsageError(`The account ${email} belongs to another person of the provider.`);
  }
  const former = accountOf(known[0]);
  const keepsAdmin = await takesLastAdmin(trx, former.id, { roles: given });
  const roles: readonly Role[] = keepsAdmin ? [...given, "admin"] : given;
  const isSame = [...former.roles].sort().join() === [...roles].sort().join();
  if (isSame && former.issuer !== null) {
    return { account: former, isNew: false, former: null, keepsAdmin };
  }
  const { rows: changed } = await trx.raw<Rows<AccountRow>>(
    `update people.accounts set roles = ?::text[], issuer = ?, subject = ?, version = version + 1
     where id = ? returning ${columns}`,
    [sqlArray(roles), issuer, subject, former.id],
  );
  const account = accountOf(changed[0] ?? known[0]);
  return { account, isNew: false, former: former.roles, keepsAdmin };
}

interface Rows<Row> {
  rows: Row[];
}

interface AccountRow {
  id: string;
  email: string;
  roles: string[];
  version: number;
  has_password: boolean;
  has_totp: boolean;
  issuer: string | null;
  disabled_at: Date | null;
  created_at: Date;
}

/** Without the secrets, which only `findCredentials` reads. */
const columns = `id, email, roles, version, password_hash is not null as has_password,
  totp_ciphertext is not null as has_totp, issuer, disabled_at, created_at`;

const accountOf = (row: AccountRow): Account => ({
  id: Number(row.id),
  email: row.email,
  // An unknown role, of another version, grants nothing.
  roles: row.roles.filter(isRole),
  version: row.version,
  hasPassword: row.has_password,
  hasTotp: row.has_totp,
  issuer: row.issuer,
  disabledAt: row.disabled_at,
  createdAt: row.created_at,
});

interface CredentialsRow {
  password_hash: string | null;
  totp_key_id: string | null;
  totp_ciphertext: Buffer | null;
  totp_last_step: string | null;
}
