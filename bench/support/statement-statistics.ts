import { withServer } from "../../test/support/server-commands.ts";

export const statementSettings = {
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track_planning": "on",
};

/** The most expensive statements of this URL's database, in ms, and in µs a row if they return rows. */
export async function topStatements(url: string, top = 20): Promise<Record<string, string | number>[]> {
  return withServer(url, async (client) => {
    await client.query("create extension if not exists pg_stat_statements");
    const { rows } = await client.query<Record<string, string>>(
      `select calls, rows, round(total_plan_time)::text as "plan ms", round(total_exec_time)::text as "run ms",
              round(((total_plan_time + total_exec_time) / greatest(calls, 1))::numeric, 2)::text as "ms a call",
              round(wal_bytes / 1024)::text as "wal kB",
              left(regexp_replace(query, '\\s+', ' ', 'g'), 90) as statement
       from pg_stat_statements
       where dbid = (select oid from pg_database where datname = current_database())
       order by total_plan_time + total_exec_time desc limit $1`,
      [top],
    );
    return rows;
  });
}
