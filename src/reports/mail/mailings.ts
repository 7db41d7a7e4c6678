import type { Knex } from "knex";
import type { MailedPeriod } from "./mail-plan.ts";

/** A mail that is to be sent, taken by one worker. */
export interface Mailing extends MailedPeriod {
  asOf: Date;
  messageId: string;
  /** With this one. */
  attempts: number;
}

/** Longer than rendering and sending take. A worker that dies meanwhile leaves the mailing to the next. */
const leaseMinutes = 15;
/** From one minute on, doubled. */
const longestPauseMinutes = 60;
/** For as long a mail server may be away. */
const givenUpAfterHours = 48;

/** Orders the mail of a period; false where it was ordered before. Idempotent. */
export async function orderMailing(
  db: Knex,
  { key, from, to }: MailedPeriod,
  { asOf, messageId }: Pick<Mailing, "asOf" | "messageId">,
): Promise<boolean> {
  const ordered = await db("reports.mailings")
    .insert({ key, from_day: from, to_day: to, as_of: asOf, message_id: messageId })
    .onConflict("key")
    .ignore()
    .returning("key");
  return ordered.length > 0;
}

/** Whether anything was ever mailed here. */
export async function isAnythingOrdered(db: Knex): Promise<boolean> {
  return (await db("reports.mailings").first("key")) !== undefined;
}

/** Takes a mailing that is due, for no other worker to take meanwhile; null where none is. */
export async function takeDueMailing(db: Knex): Promise<Mailing | null> {
  const { rows } = await db.raw<{ rows: Mailing[] }>(
    `update reports.mailings set attempts = attempts + 1, next_attempt_at = now() + make_interval(mins => ?)
     where key = (
       select key from reports.mailings where state = 'due' and next_attempt_at <= now()
       order by next_attempt_at, key limit 1 for update skip locked)
     returning key, from_day::text as "from", to_day::text as "to", as_of as "asOf", message_id as "messageId",
               attempts`,
    [leaseMinutes],
  );
  return rows[0] ?? null;
}

export async function settleSent(db: Knex, key: string): Promise<void> {
  await db("reports.mailings")
    .where({ key })
    .update({ state: "sent", settled_at: db.fn.now(), error: null });
}

/**
 * Notes a failure. Gives back when it is tried again; null where it is given up: it would be refused again, or has been tried
 * for two days.
 */
export async function settleFailed(
  db: Knex,
  { key, attempts }: Pick<Mailing, "key" | "attempts">,
  { code, isRetryable }: { code: string; isRetryable: boolean },
): Promise<Date | null> {
  const pauseMinutes = Math.min(2 ** (attempts - 1), longestPauseMinutes);
  const { rows } = await db.raw<{ rows: { state: string; next_attempt_at: Date }[] }>(
    `update reports.mailings m
     set error = :code, next_attempt_at = now() + make_interval(mins => :pauseMinutes),
         state = given_up.state, settled_at = case when given_up.state = 'failed' then now() end
     from (select case when :isRetryable and now() < ordered_at + make_interval(hours => :givenUpAfterHours)
                  then 'due' else 'failed' end as state
           from reports.mailings where key = :key) given_up
     where m.key = :key returning m.state, m.next_attempt_at`,
    { key, code, isRetryable, pauseMinutes, givenUpAfterHours },
  );
  const [row] = rows;
  return row === undefined || row.state === "failed" ? null : row.next_attempt_at;
}
