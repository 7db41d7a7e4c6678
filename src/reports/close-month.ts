import type { Knex } from "knex";
import type { About } from "./about.ts";
import type { AccountMap } from "./account-map.ts";
import { latestAsOf } from "./as-of.ts";
import { allReports } from "./catalogue/all.ts";
import { assertClosable, assertProved } from "./close-checks.ts";
import { closeSha256 } from "./close-statement.ts";
import { parseDays, resolvePeriod } from "./period.ts";
import { readReport, tuneForReports } from "./read-report.ts";
import type { Report, Row } from "./report.ts";

export interface CloseRequest {
  /** `YYYY-MM`. */
  month: string;
  timeZone: string;
  accounts: AccountMap;
  /** Closes what is not proved. */
  reason: string | null;
}

export interface Close {
  id: string;
  month: string;
  asOf: string;
  verdict: string;
  /** Of all that it says: `closeSha256`. */
  sha256: string;
  reports: readonly About[];
}

/**
 * Freezes a month: the rows of every report as of a minute ago with their hashes, and what was booked. One transaction; a month
 * is closed once, in order. Throws `UsageError` where it may not be closed.
 */
export async function closeMonth(db: Knex, request: CloseRequest): Promise<Close> {
  const { month, timeZone, accounts, reason } = request;
  return db.transaction(
    async (trx) => {
      // One at a time. Unlike a query, it waits before the moment is fixed that everything is read at, and then sees the other close.
      await trx.raw("lock table reports.closes in share row exclusive mode");
      await tuneForReports(trx);
      const period = await resolvePeriod(trx, parseDays({ from: month }, month), timeZone);
      const latest = await latestAsOf(trx);
      await assertClosable(trx, month, period, latest);
      const asOf = latest.toISOString();
      const id = await nextId(trx);
      const abouts: About[] = [];
      for (const report of allReports) {
        const question = { report, period, asOf, currency: null, accounts };
        abouts.push(await freeze(trx, id, report, (take) => readReport(trx, question, take)));
      }
      const worst = abouts.find(({ proof }) => proof.verdict !== "PASS") ?? abouts[0];
      if (worst === undefined) throw new Error("there are no reports");
      assertProved(worst.proof, reason);
      await bookMovements(trx, id, { asOf, toUtc: period.toUtc });
      const verdict = worst.proof.verdict;
      const printed = verdict === "PASS" ? null : reason;
      const facts = { month, timeZone, asOf, verdict, reason: printed };
      const sha256 = closeSha256(facts, abouts);
      await trx("reports.closes").insert({
        id,
        month: period.from,
        time_zone: timeZone,
        from_at: period.fromUtc,
        to_at: period.toUtc,
        as_of: asOf,
        verdict,
        reason: printed,
        sha256,
        sha256_covers: "results",
      });
      return { id, month, asOf, verdict, sha256, reports: abouts };
    },
    { isolationLevel: "repeatable read" },
  );
}

async function nextId(trx: Knex.Transaction): Promise<string> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    "select coalesce(max(id), 0) + 1 as id from reports.closes",
  );
  return rows[0]?.id ?? "1";
}

async function freeze(
  trx: Knex.Transaction,
  close: string,
  { name, columns }: Report,
  read: (take: (rows: Row[]) => Promise<void>) => Promise<About>,
): Promise<About> {
  let n = 0;
  const about = await read(async (rows) => {
    await trx.raw(
      `insert into reports.closed_rows (close, report, n, cells)
       select ?, ?, ? + n, array(select jsonb_array_elements_text(row))
       from jsonb_array_elements(?::jsonb) with ordinality as given(row, n)`,
      [close, name, n, JSON.stringify(rows)],
    );
    n += rows.length;
  });
  await trx("reports.closed_reports").insert({
    close,
    report: name,
    columns: JSON.stringify(columns),
    about: JSON.stringify(about),
    row_count: about.rows,
    sha256: about.sha256,
  });
  return about;
}

/** What is booked up to the end of the month and not in an earlier close. */
async function bookMovements(
  trx: Knex.Transaction,
  close: string,
  { asOf, toUtc }: { asOf: string; toUtc: string },
): Promise<void> {
  await trx.raw(
    `insert into reports.closed_movements
       (close, movement, kind, object_id, order_id, at, booked_at, is_late, currency, amount)
     select ?, movement, kind, object_id, order_id, at, booked_at, is_late, currency, amount
     from reports.booked_movements(?)
     where booked_at < ? and booked_at >= coalesce((select max(to_at) from reports.closes), '-infinity')`,
    [close, asOf, toUtc],
  );
}
