import type { Knex } from "knex";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { readingTransaction } from "../base/read-report.ts";
import type { Report } from "../base/report.ts";
import { allReports } from "../catalogue/all.ts";
import type { CloseFacts } from "./manifest.ts";
import { readCloses } from "./verify.ts";

/** A report's computed columns and the hash of its rows, or why it was not computed. */
export type Recomputed = { columns: readonly string[]; sha256: string } | { why: string };

/**
 * The reports of the last closed months, computed again as of their close by this database's functions from its mirror,
 * which may be partial. An earlier release had other columns, so only those that both have are computed. Only a report
 * that is neither in this database nor frozen has no entry. Compare the result with the same database's result before
 * its functions changed: neither equals the frozen rows, unless the mirror is complete.
 *
 * @param months the most that are computed, the latest first
 * @param before the earlier result of the same database; then the same columns are computed
 */
export async function recomputeClosedMonths(
  db: Knex,
  months: number,
  before?: ReadonlyMap<string, Recomputed>,
): Promise<ReadonlyMap<string, Recomputed>> {
  const found = new Map<string, Recomputed>();
  const reports = new Map(allReports.map((report) => [report.name, report]));
  for (const { facts } of (await readCloses(db)).slice(-months)) {
    const frozen = await db("reports.closed_reports").where({ close: facts.snapshot }).pluck<string[]>("report");
    for (const name of new Set([...reports.keys(), ...frozen])) {
      const key = `${facts.month} ${name}`;
      const report = reports.get(name);
      const earlier = before?.get(key);
      const known = earlier !== undefined && "columns" in earlier ? earlier.columns : null;
      const columns = known ?? (report === undefined ? [] : await commonColumns(db, report));
      if (report !== undefined && columns.length > 0) {
        found.set(key, await recompute(db, report, columns, facts));
      } else if (frozen.includes(name)) {
        const why = `${report === undefined ? "this version" : "the database"} does not have it`;
        found.set(key, { why });
      }
    }
  }
  return found;
}

async function recompute(db: Knex, report: Report, columns: readonly string[], facts: CloseFacts): Promise<Recomputed> {
  try {
    const sha256 = await readingTransaction(db, (trx) => hashOf(trx, report, columns, facts));
    return { columns, sha256 };
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return { why: `the database cannot compute it (${code})` };
  }
}

/** Columns of a report that its function in this database returns; none if there is no such function. */
async function commonColumns(db: Knex, { source, columns }: Report): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select a.name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       cross join unnest(p.proargnames, p.proargmodes) as a(name, mode)
     where n.nspname = 'reports' and p.proname = ? and a.mode = 't' and a.name = any(?::text[])`,
    [source, sqlArray(columns.map(({ name }) => name))],
  );
  return rows.map(({ name }) => name);
}

/** The rows are hashed in any order. Further parameters of the function keep their defaults. One statement. */
async function hashOf(
  trx: Knex.Transaction,
  { source }: Report,
  columns: readonly string[],
  facts: CloseFacts,
): Promise<string> {
  const hex = (text: string) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
  const { rows } = await trx.raw<{ rows: [{ sha256: string }] }>(
    `select ${hex("coalesce(string_agg(hash, '' order by hash collate \"C\"), '')")} as sha256
     from (select ${hex(`row(${columns.map((name) => `"${name}"`).join(", ")})::text`)} as hash
           from reports.${source}(?, ?, ?, ?)) each_row`,
    [facts.from, facts.to, facts.time_zone, facts.as_of],
  );
  return rows[0].sha256;
}
