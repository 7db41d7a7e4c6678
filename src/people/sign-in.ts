import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";
import type { Clock } from "../platform/clock.ts";
import type { Encryption } from "../platform/encryption.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { type Account, type Credentials, findCredentials, useTotpStep } from "./accounts.ts";
import { type Actor, recordAct } from "./audit.ts";
import { networkOf } from "./network-of.ts";
import { isPassword } from "./password.ts";
import { beginSession } from "./sessions.ts";
import { totpStep } from "./totp.ts";

export interface SignInDeps {
  db: Knex;
  /** Needed where an account has an app that shows codes. */
  encryption(): Promise<Encryption>;
  clock: Clock;
}

export interface PasswordAttempt {
  email: string;
  password: string;
  /** Of the app that shows codes; empty where the person gave none. */
  code: string;
  address: string;
  userAgent: string;
}

export type SignInResult =
  | { ok: true; token: string; account: Account }
  /** The same for an address, a password or a code that is wrong, and for an account that is disabled. */
  | { ok: false; reason: "wrong" }
  | { ok: false; reason: "throttled"; retryAfterSeconds: number };

/** How often somebody may be wrong. The window begins with the first failure. */
const window = { seconds: 15 * 60, failuresOfAccount: 10, failuresOfAddress: 30 };

export interface PasswordSignIn {
  /**
   * Begins a session for a person with password and, where the account has one, a code. Every failure is counted, by
   * account and by address (`networkOf`), and recorded. Takes the same time for accounts that there are and that there are not.
   * Throws `TooManySignIns`.
   */
  signIn(attempt: PasswordAttempt): Promise<SignInResult>;
}

export function createPasswordSignIn({ db, encryption, clock }: SignInDeps): PasswordSignIn {
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
    async signIn({ email, password, code, address, userAgent }) {
      const keys = { account: keyOf(email), address: keyOf(networkOf(address)) };
      // Counted before it is looked at, so that many at once are no more than many one by one.
      const waitMs = await consume([
        [byAddress, keys.address],
        [byAccount, keys.account],
      ]);
      if (waitMs > 0)
        return { ok: false, reason: "throttled", retryAfterSeconds: Math.ceil(waitMs / 1_000) };
      const found = await findCredentials(db, email);
      const isRight = await isPassword(password, found?.credentials.passwordHash ?? null);
      const now = clock.now();
      const step = found === null ? null : await codeStep(found.credentials, code, now);
      // What was typed and is no account may be somebody's password.
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
      await byAccount.delete(keys.account);
      // Colleagues share an address: who is right takes nothing from those who come next.
      await byAddress.reward(keys.address);
      const { account } = found;
      const token = await inTransaction(db, async (trx) => {
        await recordAct(trx, actor, { action: "sign-in.done", after: { method: "password" } });
        return beginSession(trx, {
          accountId: account.id,
          method: "password",
          address,
          userAgent,
          now,
        });
      });
      return { ok: true, token, account };
    },
  };

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

/** How long to wait; 0 for none. */
async function consume(
  limits: readonly (readonly [RateLimiterPostgres, string])[],
): Promise<number> {
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

/** What is kept of an address names nobody. */
const keyOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 32);
