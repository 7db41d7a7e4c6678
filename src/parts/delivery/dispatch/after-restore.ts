import type { Knex } from "knex";
import type { HeldRecipient } from "../../../app/runtime.ts";

/**
 * Keeps handlers and destinations from doing again what the lost system has done since the backup. Waiting runs become
 * dead, for a person to retry or skip; unread changes are skipped. Recipients paused by a person stay paused. Needs a
 * transaction, while no process runs them.
 */
export async function holdRuns(trx: Knex.Transaction): Promise<HeldRecipient[]> {
  const { rows } = await trx.raw<{ rows: { name: string; held: string }[] }>(
    `with running as (
       update dispatch.handlers set starts_at = now() where paused_by is distinct from 'person' returning name
     ), held as (
       update dispatch.runs r
       set state = 'dead', claimed_until = null, token = r.token + 1, failed_at = now(),
           error = 'it waited when the backup was made that was restored: it may have been done since'
       from running where r.handler = running.name and r.state = 'waiting' returning r.handler
     )
     select name, (select count(*) from held where handler = name) as held from running order by name`,
  );
  return rows.map(({ name, held }) => ({ name, held: Number(held) }));
}
