import type { Knex } from "knex";

/** Which of an account's sessions end: all, the one that is named, or all but that one. */
type EndedSessions = "all" | "named" | "others" | "none";

interface Revocation {
  sessions: EndedSessions;
  /** Those that nobody has used yet. */
  links: "all" | "none";
}

/**
 * What ends with each event of an account, of all that lets its person in. Whatever says that a session may be somebody
 * else's ends links as well. A company's sign-in that is half done is held by the browser alone and names no account:
 * it asks for the account when it is completed, and the browser forgets it with its session.
 */
export const revocations = {
  "account.disabled": { sessions: "all", links: "all" },
  // What was left from before is not let in again.
  "account.enabled": { sessions: "all", links: "all" },
  "account.password-changed": { sessions: "all", links: "all" },
  "account.totp-added": { sessions: "all", links: "all" },
  "account.totp-removed": { sessions: "all", links: "all" },
  // They give the new roles from the next request on, sessions with another token (`findSession`).
  "account.roles-changed": { sessions: "none", links: "none" },
  "session.ended": { sessions: "named", links: "all" },
  "other-sessions.ended": { sessions: "others", links: "all" },
  "sign-out.done": { sessions: "named", links: "none" },
  // Over a session that the browser had, whoever's it was.
  "sign-in.done": { sessions: "named", links: "none" },
} as const satisfies Record<string, Revocation>;

export type Revoking = keyof typeof revocations;

/**
 * Ends what lets a person in, as `revocations` has it for an event. `sessionId`: the session that is meant. Where
 * one is to end and the account has none of that id, nothing does. Returns how many sessions ended. Needs the
 * transaction that records the event. Two statements.
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
