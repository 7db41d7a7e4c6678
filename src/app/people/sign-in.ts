import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import type { Clock } from "../../platform/clock.ts";
import type { Encryption } from "../../platform/encryption.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { type Account, type Credentials, findAccountById, findCredentials, useTotpStep } from "./accounts.ts";
import { type Actor, recordAct } from "./audit.ts";
import { isPassword } from "./password.ts";
import { type Browser, beginSession } from "./sessions.ts";
import { emailOfSignInLink, useSignInLink } from "./sign-in-links.ts";
import { totpStep } from "./totp.ts";
import { isIPv6 } from "node:net";

export interface SignInDeps {
  db: Knex;
  /** Needed where an account has an app that shows codes. */
  encryption(): Promise<Encryption>;
  clock: Clock;
}

export interface PasswordAttempt extends Browser {
  email: string;
  password: string;
  /** The app's code; empty where the person gave none. */
  code: string;
}

export type SignInResult =
  | { ok: true; token: string; account: Account }
  /** The same for an address, a password or a code that is wrong, and for an account that is disabled. */
  | { ok: false; reason: "wrong" }
  | { ok: false; reason: "throttled"; retryAfterSeconds: number };

/** The limits of failed attempts. The window begins with the first failure. */
const window = { seconds: 15 * 60, failuresOfAccount: 10, failuresOfAddress: 30 };

export interface LinkAttempt extends Browser {
  token: string;
  /** The app's code; empty where the person was not asked for one yet. */
  code: string;
}

export type LinkResult =
  | SignInResult
  /** The link was used or revoked, is older than ten minutes, never was, or its account is disabled. */
  | { ok: false; reason: "over" }
  /** The account has an app that shows codes: the link waits for one. */
  | { ok: false; reason: "code needed" };

/** Sign-in with this system's own passwords and links, not through a company's provider or proxy. */
export interface OwnSignIn {
  /**
   * Begins a session for a person with password and, where the account has one, a code. Every failure is counted, by
   * account and by address (`networkOf`), and recorded. Takes the same time for accounts that there are and that there are not.
   * Throws `TooManySignIns`.
   */
  signIn(attempt: PasswordAttempt): Promise<SignInResult>;
  /**
   * Begins a session by a link, which replaces only the password: an account with an app is asked for its code, and
   * wrong codes count as they do with a password. The link is used up when the session begins.
   */
  signInByLink(attempt: LinkAttempt): Promise<LinkResult>;
}

export function createSignIn({ db, encryption, clock }: SignInDeps): OwnSignIn {
  const limiterOf = (keyPrefix: string, points: number) =>
    new RateLimiterPostgres({
      storeClient: db,
      storeType: "knex",
      schemaName: "people",
      tableName: "attempts",
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix,
      points,
      duration: window.seconds,
    });
  const byAccount = limiterOf("account", window.failuresOfAccount);
  const byAddress = limiterOf("address", window.failuresOfAddress);

  return {
    async signIn({ email, password, code, ...browser }) {
      const { address } = browser;
      const throttled = await count(email, address);
      if (throttled !== null) return throttled;
      const found = await findCredentials(db, email);
      const isRight = await isPassword(password, found?.credentials.passwordHash ?? null);
      const now = clock.now();
      // Only after the password: a secret that cannot be decrypted fails, and would reveal to strangers that the
      // account exists.
      const step = found !== null && isRight ? await codeStep(found.credentials, code, now) : null;
      // An unknown name may be a password typed into the wrong field.
      const name = found?.account.email ?? "unknown";
      const actor: Actor = {
        accountId: found?.account.id ?? null,
        name,
        via: "dashboard",
        address,
      };
      const isIn = found !== null && isRight && step !== false && found.account.disabledAt === null;
      if (!isIn || (step !== null && !(await useTotpStep(db, found.account.id, step)))) {
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "sign-in.refused" }));
        return { ok: false, reason: "wrong" };
      }
      const { account } = found;
      const result = await inTransaction(db, async (trx): Promise<SignInResult> => {
        if (!(await isUnchanged(trx, account))) {
          await recordAct(trx, actor, { action: "sign-in.refused" });
          return { ok: false, reason: "wrong" };
        }
        await recordAct(trx, actor, { action: "sign-in.done", after: { method: "password" } });
        const session = { accountId: account.id, method: "password", ...browser, now } as const;
        return { ok: true, token: await beginSession(trx, session), account };
      });
      if (result.ok) await forgive(email, address);
      return result;
    },

    async signInByLink({ token: link, code, ...browser }) {
      const { address } = browser;
      const now = clock.now();
      const email = await emailOfSignInLink(db, link, now);
      const found = email === null ? null : await findCredentials(db, email);
      if (found === null || found.account.disabledAt !== null) return { ok: false, reason: "over" };
      const { account, credentials } = found;
      const asksCode = credentials.totp !== null;
      if (asksCode && code === "") return { ok: false, reason: "code needed" };
      const throttled = asksCode ? await count(account.email, address) : null;
      if (throttled !== null) return throttled;
      const step = await codeStep(credentials, code, now);
      const actor: Actor = {
        accountId: account.id,
        name: account.email,
        via: "dashboard",
        address,
      };
      const result = await inTransaction(db, async (trx): Promise<LinkResult> => {
        if (!(await isUnchanged(trx, account))) return { ok: false, reason: "over" };
        if (step === false || (step !== null && !(await useTotpStep(trx, account.id, step)))) {
          await recordAct(trx, actor, { action: "sign-in.refused" });
          return { ok: false, reason: "wrong" };
        }
        if ((await useSignInLink(trx, link, now)) === null) return { ok: false, reason: "over" };
        await recordAct(trx, actor, { action: "sign-in.done", after: { method: "link" } });
        const session = { accountId: account.id, method: "link", ...browser, now } as const;
        return { ok: true, token: await beginSession(trx, session), account };
      });
      if (result.ok && asksCode) await forgive(account.email, address);
      return result;
    },
  };

  /** Counts before it checks, so that concurrent attempts are no more than consecutive ones. Null: not too many yet. */
  async function count(email: string, address: string): Promise<(SignInResult & { reason: "throttled" }) | null> {
    const waitMs = await consume([
      [byAddress, keyOf(networkOf(address))],
      [byAccount, keyOf(email)],
    ]);
    if (waitMs === 0) return null;
    return { ok: false, reason: "throttled", retryAfterSeconds: Math.ceil(waitMs / 1_000) };
  }

  async function forgive(email: string, address: string): Promise<void> {
    await byAccount.delete(keyOf(email));
    // Colleagues share an address: a success must not use up the attempts of the next person.
    await byAddress.reward(keyOf(networkOf(address)));
  }

  /** Null: this account needs no code; false: the code is wrong. */
  async function codeStep(
    { totp, totpLastStep: lastStep }: Credentials,
    code: string,
    now: Date,
  ): Promise<number | null | false> {
    if (totp === null) return null;
    const secret = (await encryption()).decrypt(totp);
    return (await totpStep({ secret, lastStep }, code, now)) ?? false;
  }
}

/**
 * Whether an account is unchanged since it was read, and stays so until the transaction ends: checking a password takes
 * time, and one that was changed in that time must not begin a session.
 */
const isUnchanged = async (trx: Knex.Transaction, { id, version }: Account): Promise<boolean> =>
  (await findAccountById(trx, id, "locked"))?.version === version;

/** The wait; 0 for none. */
async function consume(limits: readonly (readonly [RateLimiterPostgres, string])[]): Promise<number> {
  for (const [limiter, key] of limits) {
    try {
      await limiter.consume(key);
    } catch (error) {
      if (error instanceof RateLimiterRes) return Math.max(1, error.msBeforeNext);
      throw error;
    }
  }
  return 0;
}

/** Addresses are stored as hashes, which identify no person. */
const keyOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/**
 * The network by which attempts are counted: an IPv4 address, or the first 64 bits of an IPv6 address, since a person
 * can choose the rest. Without brackets and port, which some proxies write and which differ each time. Any other text
 * is returned as it is.
 */
function networkOf(written: string): string {
  const address = written
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^([^:]+):\d+$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/i, "")
    .replace(/%.*$/, "");
  if (!isIPv6(address)) return address;
  // A URL has one way to write each address.
  const [before = "", after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = before === "" ? [] : before.split(":");
  const behind = after === undefined || after === "" ? 0 : after.split(":").length;
  while (groups.length + behind < 8) groups.push("0");
  return `${groups.slice(0, 4).join(":")}::/64`;
}
