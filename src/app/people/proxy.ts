import { timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { Knex } from "knex";
import type { Clock } from "../../platform/clock.ts";
import { UsageError } from "../../platform/errors.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { findAccount, readEmail } from "./accounts.ts";
import { recordAct } from "./audit.ts";
import { type Browser, beginSession, hashOf } from "./sessions.ts";

/** A proxy before the dashboard that has people sign in, and names them in a header. */
export interface ProxySettings {
  /** The header with the e-mail address, in lower case. */
  header: string;
  /** What the proxy sends in `x-tallyhook-proxy-secret`: without it the header could be anybody's. */
  secret: string;
  /** The addresses from which it connects. */
  peers: readonly string[];
}

const proxySecretHeader = "x-tallyhook-proxy-secret";

/** What of a request says who it is. */
export interface ProxiedRequest {
  /** Of the connection itself, not of a header. */
  peer: string;
  header(name: string): string;
}

/** The e-mail address of the person whom the proxy names; null where the request is not the proxy's. */
export function proxiedEmail({ header, secret, peers }: ProxySettings, request: ProxiedRequest): string | null {
  const peer = request.peer.replace(/^::ffff:/, "");
  const isPeer = isIP(peer) !== 0 && peers.includes(peer);
  // Of equal length, whatever was sent.
  const isSecret = timingSafeEqual(hashOf(request.header(proxySecretHeader)), hashOf(secret));
  if (!isPeer || !isSecret) return null;
  try {
    return readEmail(request.header(header));
  } catch (error) {
    if (error instanceof UsageError) return null;
    throw error;
  }
}

/** Begins a session for a person whom the proxy has named; null for one who has no account, or a disabled one. */
export async function beginProxied(
  { db, clock }: { db: Knex; clock: Clock },
  { email, ...browser }: Browser & { email: string },
): Promise<string | null> {
  return inTransaction(db, async (trx) => {
    const account = await findAccount(trx, email);
    if (account === null || account.disabledAt !== null) return null;
    const actor = {
      accountId: account.id,
      name: email,
      via: "dashboard",
      address: browser.address,
    } as const;
    await recordAct(trx, actor, { action: "sign-in.done", after: { method: "proxy" } });
    const now = clock.now();
    return beginSession(trx, { accountId: account.id, method: "proxy", ...browser, now });
  });
}
