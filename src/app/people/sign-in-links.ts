import type { Knex } from "knex";
import { hashOf, newToken } from "./sessions.ts";
import { type Account, createAccount, findAccount } from "./accounts.ts";
import { roleNames } from "./permissions.ts";

const validMs = 10 * 60_000;

/** Makes a link's token, which signs its person in once within ten minutes. Removes those that are over. */
export async function createSignInLink(trx: Knex.Transaction, accountId: number, now: Date): Promise<string> {
  await removeEndedLinks(trx, now);
  const token = newToken();
  await trx("people.sign_in_links").insert({
    token_hash: hashOf(token),
    account_id: accountId,
    expires_at: new Date(now.getTime() + validMs),
  });
  return token;
}

/** The e-mail address of a link's account, which stays usable; null if it was used, is over, or never was. */
export async function emailOfSignInLink(db: Knex, token: string, now: Date): Promise<string | null> {
  const [email] = await db("people.sign_in_links as l")
    .join("people.accounts as a", "a.id", "l.account_id")
    .where({ token_hash: hashOf(token) })
    .where("l.expires_at", ">", now)
    .pluck<string[]>("a.email");
  return email ?? null;
}

/** Uses up a link. Returns its account's id; null if it was used, is over, or never was. One statement. */
export async function useSignInLink(trx: Knex.Transaction, token: string, now: Date): Promise<number | null> {
  const used = await trx("people.sign_in_links as l")
    .where({ token_hash: hashOf(token) })
    .delete()
    .returning<{ account_id: string; expires_at: Date }[]>(["account_id", "expires_at"]);
  const [link] = used;
  return link === undefined || link.expires_at <= now ? null : Number(link.account_id);
}

/** Removes the links that expired unused. Returns their number. One statement. */
export const removeEndedLinks = (db: Knex, now: Date): Promise<number> =>
  db("people.sign_in_links").where("expires_at", "<=", now).delete();

/** The account of the person who runs everything on one machine and has access to all of it anyway. */
const ownersEmail = "owner@localhost";

/** The account behind the link that `tallyhook start` prints: without a password, with every role. Needs a transaction. */
export async function accountOfOwner(trx: Knex.Transaction): Promise<Account> {
  const known = await findAccount(trx, ownersEmail);
  return known ?? createAccount(trx, { email: ownersEmail, roles: roleNames, passwordHash: null });
}
