import type { Knex } from "knex";
import { keepPartitions } from "../core/inbox/partitions.ts";
import { keepFeed } from "../core/mirror/changes/feed-partitions.ts";
import { forgetUnbelieved } from "../core/mirror/misdated.ts";
import { forgetAnswers } from "../core/receiver/counters.ts";
import { forgetReceivers } from "../core/receiver/heartbeats.ts";
import type { ScheduledTask } from "../core/worker/scheduled-tasks.ts";
import { databaseNow } from "../platform/postgres/database-clock.ts";
import { hourly } from "./hourly.ts";
import type { Runtime } from "./runtime.ts";
import { removeEndedSessions } from "./people/sessions.ts";
import { removeEndedLinks } from "./people/sign-in-links.ts";

/** Tasks that remove old rows of core and app, one for each schema. docs/operations.md lists what is kept how long. */
export async function retentionTasks(
  runtime: Pick<Runtime, "config" | "db" | "log">,
  readNow: (db: Knex) => Promise<Date> = databaseNow,
): Promise<Record<string, ScheduledTask>> {
  const { config, log } = runtime;
  const db = await runtime.db();

  return {
    "inbox-partitions": hourly(async () => {
      const { eventsKeepDays: keepDays } = config;
      const changes = await keepPartitions({ db, log }, { now: await readNow(db), keepDays });
      log.info(changes, "the partitions of the inbox are kept");
    }),
    "feed-partitions": hourly(async () => {
      const { changesKeepDays: keepDays } = config;
      const changes = await keepFeed({ db, log }, { now: await readNow(db), keepDays });
      log.info(changes, "the partitions of the feed are kept");
    }),
    "receiver-retention": hourly(async () => {
      await forgetAnswers(db, await readNow(db));
      await forgetReceivers(db);
    }),
    "mirror-retention": hourly(async (stopping) => {
      const states = await forgetUnbelieved(db, stopping);
      log.info({ states }, "old states that were dated in the future are removed");
    }),
    "people-retention": hourly(async () => {
      log.info(await forgetEnded(db, await readNow(db)), "sessions that are over are removed");
    }),
  };
}

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
