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
  /** Sent by the proxy in `x-tallyhook-proxy-secret`: without it any client could set the header. */
  secret: string;
  /** The addresses from which it connects. */
  peers: readonly string[];
}

const proxySecretHeader = "x-tallyhook-proxy-secret";

/** The parts of a request that identify the person. */
export interface ProxiedRequest {
  /** The connection's own peer, not a header's. */
  peer: string;
  header(name: string): string;
}

/** The e-mail address of the person that the proxy names; null where the request did not come from the proxy. */
export function proxiedEmail({ header, secret, peers }: ProxySettings, request: ProxiedRequest): string | null {
  const peer = request.peer.replace(/^::ffff:/, "");
  const isPeer = isIP(peer) !== 0 && peers.includes(peer);
  // Hashes have equal length for any input.
  const isSecret = timingSafeEqual(hashOf(request.header(proxySecretHeader)), hashOf(secret));
  if (!isPeer || !isSecret) return null;
  try {
    return readEmail(request.header(header));
  } catch (error) {
    if (error instanceof UsageError) return null;
    throw error;
  }
}

/** Begins a session for a person that the proxy has named; null without an account, or for a disabled one. */
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
