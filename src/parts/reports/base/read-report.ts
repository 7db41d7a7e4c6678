import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { type ReportFacts, type Proof, readProof } from "./report-facts.ts";
import type { AccountMap } from "./account-map.ts";
import type { Period } from "./period.ts";
import { countUnknownCells, readUnknown } from "./unknown-values.ts";
import type { Column, Report, Row } from "./report.ts";

/** Takes rows as they come. The next rows wait until it resolves. */
export type TakeRows = (rows: Row[]) => Promise<void> | void;

const rowsAtOnce = 5_000;

/**
 * Reads a report: gives its rows to `take` in batches, then returns the facts about them. Needs a repeatable read
 * transaction tuned by `tuneForReports`, such as `readingTransaction` opens, so that everything is read at one moment.
 * Memory use does not depend on the number of rows.
 */
export async function readReport(trx: Knex.Transaction, question: ReportQuery, take: TakeRows): Promise<ReportFacts> {
  const { report, period, asOf, currency } = question;
  const proof = await readProof(trx, period, asOf);
  const hash = createRowHash(report.columns);
  const cells = countUnknownCells(report);
  let isWrong = false;
  const outcome = report.columns.findIndex(({ name }) => name === "outcome");
  const { sql, bindings } = rowsQuery(question);
  await trx.raw(`declare report_rows no scroll cursor for ${sql}`, bindings as string[]);
  for await (const rows of fetchedAhead(trx)) {
    hash.add(rows);
    cells.add(rows);
    isWrong ||= report.failsOn !== undefined && rows.some((row) => row[outcome] === report.failsOn);
    await take(rows);
  }
  await trx.raw("close report_rows");
  const unknown = [...(await readUnknown(trx, question)), ...cells.counts()];
  return {
    report: report.name,
    explains: report.explains,
    period,
    asOf: asOf ?? (await timeOf(trx)),
    isLive: asOf === null,
    currency,
    close: null,
    proof: isWrong ? failed(proof) : proof,
    ...(unknown.length === 0 ? {} : { unknown }),
    ...hash.digest(),
  };
}

/** Opens a read-only transaction that sees one moment of the database, with the memory to sort a million rows. */
export async function readingTransaction<T>(db: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return inTransaction(
    db,
    async (trx) => {
      await tuneForReports(trx);
      return work(trx);
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
}

/**
 * Tunes the planner for reports, within the transaction. Reports read all rows, not just the first ones, and JIT
 * compilation costs more than it saves. Functions return ids in the database's own collation, in which sorting a
 * million of them takes seconds; so merge joins are off and ids are hashed instead.
 */
export async function tuneForReports(trx: Knex.Transaction): Promise<void> {
  await trx.raw(
    `select set_config('work_mem', '128MB', true), set_config('cursor_tuple_fraction', '1', true),
            set_config('jit', 'off', true),
            set_config('enable_mergejoin', 'off', true)`,
  );
}

/** The cursor's rows in batches. The server computes the next batch while one is being processed. */
async function* fetchedAhead(trx: Knex.Transaction): AsyncGenerator<Row[], void, undefined> {
  let coming = fetchRows(trx);
  try {
    for (;;) {
      const rows = await coming;
      if (rows.length === 0) return;
      coming = fetchRows(trx);
      // The consumer may fail before this is awaited; its failure must not become an unhandled rejection.
      coming.catch(() => {});
      yield rows;
    }
  } finally {
    // The connection must have answered before it is used again.
    await coming.catch(() => {});
  }
}

async function fetchRows(trx: Knex.Transaction): Promise<Row[]> {
  const { rows } = await trx
    .raw<{ rows: Row[] }>(`fetch ${rowsAtOnce} from report_rows`)
    .options({ rowMode: "array", types: asText });
  return rows;
}

/** Every cell is text, so the driver needs no parsers. */
const asText = { getTypeParser: () => (text: string) => text };

/** Rows that differ turn PASS into FAIL. INCOMPLETE stays, since unread objects may differ as well. */
const failed = (proof: Proof): Proof => (proof.verdict === "PASS" ? { ...proof, verdict: "FAIL" } : proof);

async function timeOf(trx: Knex.Transaction): Promise<string> {
  const { rows } = await trx.raw<{ rows: { at: Date }[] }>("select now() as at");
  return rows[0]?.at.toISOString() ?? "";
}

/** The report, its period, time, currency and settings. */
export interface ReportQuery {
  report: Report;
  period: Period;
  /** ISO 8601; null: the mirror's present state. */
  asOf: string | null;
  currency: string | null;
  accounts: AccountMap;
  region: NetworkRegion;
  /** UTC. Entries booked before it are final although their month is not closed yet; set by the close itself. */
  finalUntil?: string;
}

/** The statement that reads the rows, every cell as text. */
function rowsQuery({ report, period, asOf, currency, accounts, region, finalUntil }: ReportQuery): {
  sql: string;
  bindings: (string | null)[];
} {
  const parameters = ["?::timestamptz", "?::timestamptz", "?", "?::timestamptz"];
  const bindings = [period.fromUtc, period.toUtc, period.timeZone, asOf];
  if (report.takesAccounts === true) {
    parameters.push("?::jsonb", "?::timestamptz");
    bindings.push(JSON.stringify(accounts), finalUntil ?? null);
  }
  if (report.takesRegion === true) {
    parameters.push("?");
    bindings.push(region);
  }
  if (currency !== null) bindings.push(currency);
  return {
    sql: `select ${report.columns.map(cellSql).join(", ")} from reports.${report.source}(${parameters.join(", ")})
          ${currency === null ? "" : "where currency = ?"} order by ${report.orderBy}`,
    bindings,
  };
}

// The alias differs from the column's name: else `order by` would use the alias and sort as text.
const cellSql = ({ name, kind }: Column): string =>
  kind === "time"
    ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}_text"`
    : `${name}::text as "${name}_text"`;

export interface RowHash {
  add(rows: readonly Row[]): void;
  /** Call once, after the last row. */
  digest(): { rows: number; sha256: string };
}

/** SHA-256 of the column names and of each row, one JSON array a line. It is the same for every format. */
export function createRowHash(columns: readonly Column[]): RowHash {
  const hash = createHash("sha256");
  let count = 0;
  hash.update(`${JSON.stringify(columns.map(({ name }) => name))}\n`);
  return {
    add(rows) {
      count += rows.length;
      hash.update(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    },
    digest: () => ({ rows: count, sha256: hash.digest("hex") }),
  };
}

/**
 * The acquirer's region, as far as a card network's thresholds depend on it: Latin America and the Caribbean (`lac`),
 * the Middle East and North Africa (`mena`), or anywhere else (`global`).
 */
export type NetworkRegion = "global" | "lac" | "mena";
