import type { Knex } from "knex";
import type { DownHost } from "../../../app/answers.ts";
import { redactSecrets } from "../../../platform/redaction.ts";

/** A supervisor that was silent for longer has ended; its successor reports for itself. */
const silentSeconds = 60;

/** A message of an import may be long. */
const longestReason = 1_000;

/** Files of handlers that do not run, or end their process again and again, as their supervisor knows it. */
export interface HostTrouble {
  files: string[];
  /** These run in a process of their own. */
  isApart: boolean;
  /** Duration of that state. */
  lastsMs: number;
  why: string;
}

/**
 * Records a supervisor's present troubles in place of its earlier ones. Idempotent; one statement, by the database's
 * clock. Also forgets supervisors that ended silently.
 */
export async function noteTroubles(db: Knex, supervisor: string, troubles: readonly HostTrouble[]): Promise<void> {
  const rows = troubles.map(({ files, isApart, lastsMs, why }) => ({
    files: files.toSorted(),
    is_apart: isApart,
    lasts: lastsMs / 1_000,
    reason: redactSecrets(why).slice(0, longestReason),
  }));
  await db.raw(
    `with told as (
       select row_number() over ()::integer as number, files, is_apart, make_interval(secs => lasts) as lasts, reason
       from jsonb_to_recordset(:rows::jsonb) as t (files text[], is_apart boolean, lasts float8, reason text)
     ), gone as (
       delete from dispatch.hosts h
       where case when h.supervisor = :supervisor then h.number > (select count(*) from told)
                  else h.seen_at < now() - interval '1 hour' end
     )
     insert into dispatch.hosts as h (supervisor, number, files, is_apart, down_since, reason, seen_at)
     select :supervisor, number, files, is_apart, now() - lasts, reason, now() from told
     on conflict (supervisor, number) do update set files = excluded.files, is_apart = excluded.is_apart,
       down_since = excluded.down_since, reason = excluded.reason, seen_at = excluded.seen_at`,
    { rows: JSON.stringify(rows), supervisor },
  );
}

/** Hosts that have been down for at least so many minutes, the longest first. One statement, of a few rows. */
export async function readDownHosts(db: Knex, { afterMinutes }: { afterMinutes: number }): Promise<DownHost[]> {
  const { rows } = await db.raw<{ rows: DownHost[] }>(
    `select files, is_apart as "isApart", min(down_since) as "downSince",
       (array_agg(reason order by down_since))[1] as reason, count(*)::int as supervisors
     from dispatch.hosts
     where seen_at > now() - make_interval(secs => :silentSeconds)
       and down_since <= now() - make_interval(mins => :afterMinutes)
     group by files, is_apart order by min(down_since), files`,
    { afterMinutes, silentSeconds },
  );
  return rows;
}
