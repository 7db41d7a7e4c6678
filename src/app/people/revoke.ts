import type { Knex } from "knex";

/** The sessions of an account that end: all, the named one, or all but the named one. */
type EndedSessions = "all" | "named" | "others" | "none";

interface Revocation {
  sessions: EndedSessions;
  /** Unused links only. */
  links: "all" | "none";
}

/**
 * The credentials that end with each event of an account. Every event that hints at a stolen session ends links as
 * well. An unfinished sign-in with the company's account is stored only in the browser and names no account: it reads
 * the account when it is completed, and the browser forgets it with its session.
 */
export const revocations = {
  "account.disabled": { sessions: "all", links: "all" },
  // Sessions and links from before are not let in again.
  "account.enabled": { sessions: "all", links: "all" },
  "account.password-changed": { sessions: "all", links: "all" },
  "account.totp-added": { sessions: "all", links: "all" },
  "account.totp-removed": { sessions: "all", links: "all" },
  // They give the new roles from the next request on, sessions with another token (`findSession`).
  "account.roles-changed": { sessions: "none", links: "none" },
  "session.ended": { sessions: "named", links: "all" },
  "other-sessions.ended": { sessions: "others", links: "all" },
  "sign-out.done": { sessions: "named", links: "none" },
  // Replaces the session that the browser had, of any account.
  "sign-in.done": { sessions: "named", links: "none" },
} as const satisfies Record<string, Revocation>;

export type Revoking = keyof typeof revocations;

/**
 * Ends credentials of an account, as `revocations` lists them for an event. `sessionId`: the named session. If the
 * account lacks it, no session ends. Returns how many sessions ended. Needs the transaction that records the event. Two
 * statements.
 */
export async function revoke(
  trx: Knex.Transaction,
  accountId: number,
  event: Revoking,
  sessionId: string | null = null,
): Promise<number> {
  const { sessions, links }: Revocation = revocations[event];
  const ofAccount = trx("people.sessions").where({ account_id: accountId });
  if (sessions === "named") void ofAccount.whereRaw("id::text = ?", [sessionId]);
  if (sessions === "others") void ofAccount.whereRaw("id::text is distinct from ?", [sessionId]);
  const ended = sessions === "none" ? 0 : await ofAccount.delete();
  const isDone = sessions !== "named" || ended > 0;
  if (isDone && links === "all") {
    await trx("people.sign_in_links").where({ account_id: accountId }).delete();
  }
  return ended;
}
