import type { Knex } from "knex";
import { removeEndedSessions } from "./sessions.ts";
import { removeEndedLinks } from "./sign-in-links.ts";

/**
 * Removes expired sessions and links, and failed attempts that no longer count. Three statements. Returns the numbers
 * of removed rows.
 */
export async function forgetEnded(db: Knex, now: Date): Promise<{ sessions: number; links: number; attempts: number }> {
  return {
    sessions: await removeEndedSessions(db, now),
    links: await removeEndedLinks(db, now),
    attempts: await db("people.attempts").where("expire", "<=", now.getTime()).delete(),
  };
}
