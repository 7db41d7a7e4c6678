import type { Knex } from "knex";
import type { Configuration } from "openid-client";
import type { Clock } from "../../platform/clock.ts";
import { TallyhookError, UsageError } from "../../platform/errors.ts";
import { isLoopbackHost } from "../../platform/http/listen.ts";
import { once } from "../../platform/once.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { accountOfProvider, readEmail } from "./accounts.ts";
import { type Actor, recordAct } from "./audit.ts";
import type { Role } from "./permissions.ts";
import { revoke } from "./revoke.ts";
import { type Browser, beginSession } from "./sessions.ts";

/** The OpenID provider of the company, and what its groups may do here. */
export interface OidcSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The claim that names a person's groups. */
  claim: string;
  rolesByGroup: ReadonlyMap<string, readonly Role[]>;
  /** The address of the dashboard, to which the provider sends people back. */
  publicUrl: string;
}

export const callbackPath = "/sign-in/oidc/callback";

/** State in the browser while the person is at the provider. */
export interface OidcAttempt {
  state: string;
  nonce: string;
  verifier: string;
}

export type OidcResult =
  /** `keepsAdmin`: the provider has withdrawn the role admin, but the account keeps it as the last one. */
  | { ok: true; token: string; keepsAdmin: boolean }
  /** `problem`: the part that the provider's answer lacks, for the person. */
  | { ok: false; problem: string };

export interface OidcSignIn {
  /** `url`: the provider's sign-in page for the person. Throws `ProviderUnreachable`. */
  begin(): Promise<{ url: string; attempt: OidcAttempt }>;
  /**
   * Begins a session for the person whom the provider named. `url`: the address of the redirect back. Throws
   * `ProviderUnreachable`.
   */
  complete(url: URL, attempt: OidcAttempt, browser: Browser): Promise<OidcResult>;
}

export class ProviderUnreachable extends TallyhookError {}

const library = once(() => import("openid-client"));

export function createOidcSignIn({ db, clock }: { db: Knex; clock: Clock }, settings: OidcSettings): OidcSignIn {
  const redirectUri = `${settings.publicUrl}${callbackPath}`;
  let discovered: Promise<Configuration> | null = null;

  /** Fetched until it has answered once. */
  async function configuration(): Promise<Configuration> {
    discovered ??= discover(settings);
    try {
      return await discovered;
    } catch (cause) {
      discovered = null;
      throw new ProviderUnreachable(
        `The sign-in of ${new URL(settings.issuer).host} does not answer as it should. Try again, or sign in with ` +
          "a password.",
        { cause },
      );
    }
  }

  return {
    async begin() {
      const oidc = await library();
      const config = await configuration();
      const attempt: OidcAttempt = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      };
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: "openid email",
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, attempt };
    },

    async complete(url, { state, nonce, verifier }, browser) {
      const oidc = await library();
      const config = await configuration();
      let claims: Readonly<Record<string, unknown>>;
      try {
        const returned = new URL(`${redirectUri}${url.search}`);
        const tokens = await oidc.authorizationCodeGrant(config, returned, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        claims = tokens.claims() ?? {};
        const isLacking = claims["email"] === undefined || claims[settings.claim] === undefined;
        if (isLacking && config.serverMetadata().userinfo_endpoint !== undefined) {
          const more = await oidc.fetchUserInfo(config, tokens.access_token, String(claims["sub"]));
          claims = { ...more, ...claims };
        }
      } catch (cause) {
        throw new ProviderUnreachable("The company's sign-in was not completed. Begin again from the sign-in page.", {
          cause,
        });
      }
      const who = identityOf(claims, settings);
      const actor: Actor = {
        accountId: null,
        name: who.email ?? "unknown",
        via: "dashboard",
        address: browser.address,
      };
      if (!who.ok) {
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "sign-in.refused" }));
        return { ok: false, problem: who.problem };
      }
      try {
        return await inTransaction(db, async (trx): Promise<OidcResult> => {
          const { account, isNew, former, keepsAdmin } = await accountOfProvider(trx, {
            issuer: settings.issuer,
            subject: who.subject,
            email: who.email,
            roles: who.roles,
          });
          const subject = { kind: "account", id: account.email };
          const known: Actor = { ...actor, accountId: account.id, name: account.email };
          const after = { roles: account.roles };
          if (isNew) await recordAct(trx, known, { action: "account.added", subject, after });
          if (former !== null) {
            const before = { roles: former };
            await revoke(trx, account.id, "account.roles-changed");
            await recordAct(trx, known, {
              action: "account.roles-changed",
              subject,
              before,
              after,
            });
          }
          if (account.disabledAt !== null) {
            await recordAct(trx, known, { action: "sign-in.refused" });
            return {
              ok: false,
              problem: "This account is disabled. Ask a person with the role admin.",
            };
          }
          await recordAct(trx, known, { action: "sign-in.done", after: { method: "oidc" } });
          const now = clock.now();
          const session = { accountId: account.id, method: "oidc", ...browser, now } as const;
          return { ok: true, token: await beginSession(trx, session), keepsAdmin };
        });
      } catch (error) {
        if (error instanceof UsageError) return { ok: false, problem: error.message };
        throw error;
      }
    },
  };
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const oidc = await library();
  const url = new URL(issuer);
  // A provider on this machine, as in tests; settings refuse http elsewhere.
  const isLocal = url.protocol === "http:" && isLoopbackHost(url.hostname);
  return oidc.discovery(url, clientId, clientSecret, undefined, {
    timeout: 10,
    // oxlint-disable-next-line typescript/no-deprecated -- marked so that nobody uses it by accident
    execute: isLocal ? [oidc.allowInsecureRequests] : [],
  });
}

type Identity =
  | { ok: true; subject: string; email: string; roles: readonly Role[] }
  | { ok: false; email: string | null; problem: string };

/** The person's identity and roles, as the provider reports them. */
export function identityOf(
  claims: Readonly<Record<string, unknown>>,
  { claim, rolesByGroup }: Pick<OidcSettings, "claim" | "rolesByGroup">,
): Identity {
  const { sub, email_verified: isVerified } = claims;
  let email: string;
  try {
    email = readEmail(typeof claims["email"] === "string" ? claims["email"] : "");
  } catch {
    return {
      ok: false,
      email: null,
      problem: "The company's sign-in gave no e-mail address for you.",
    };
  }
  // Otherwise a person could claim another person's address at the provider, and become them here.
  if (isVerified !== true) {
    return {
      ok: false,
      email,
      problem: "The company's sign-in has not verified your e-mail address.",
    };
  }
  const given = claims[claim];
  const groups = (Array.isArray(given) ? given : [given]).filter((group) => typeof group === "string");
  const roles = [...new Set(groups.flatMap((group) => rolesByGroup.get(group) ?? []))];
  if (typeof sub !== "string" || roles.length === 0) {
    return {
      ok: false,
      email,
      problem: "None of your groups has a role here. Ask those who run Tallyhook (DASHBOARD_OIDC_ROLES).",
    };
  }
  return { ok: true, subject: sub, email, roles };
}
