import type { Knex } from "knex";
import { removeEndedSessions } from "./sessions.ts";
import { removeEndedLinks } from "./sign-in-links.ts";

/**
 * Removes what nobody can use any more: sessions and links that are over, and failed attempts that count no longer.
 * Three statements. Returns how many rows are gone.
 */
export async function forgetEnded(db: Knex, now: Date): Promise<{ sessions: number; links: number; attempts: number }> {
  return {
    sessions: await removeEndedSessions(db, now),
    links: await removeEndedLinks(db, now),
    attempts: await db("people.attempts").where("expire", "<=", now.getTime()).delete(),
  };
}
