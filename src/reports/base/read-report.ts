import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { type About, type Proof, readProof } from "./about.ts";
import type { AccountMap } from "./account-map.ts";
import type { Period } from "./period.ts";
import type { Column, Report, Row } from "./report.ts";

/** Takes the rows as they come; the next ones wait until it is done with these. */
export type TakeRows = (rows: Row[]) => Promise<void> | void;

const rowsAtOnce = 5_000;

/**
 * Answers a question: gives the rows to `take` in batches and then tells about them. Everything is of one moment.
 * `trx` must be of `readingTransaction`. Memory stays flat whatever the number of rows.
 */
export async function readReport(
  trx: Knex.Transaction,
  question: Question,
  take: TakeRows,
): Promise<About> {
  const { report, period, asOf, currency } = question;
  const proof = await readProof(trx, period, asOf);
  const hash = createRowHash(report.columns);
  let isWrong = false;
  const outcome = report.columns.findIndex(({ name }) => name === "outcome");
  const { sql, bindings } = rowsQuery(question);
  await trx.raw(`declare report_rows no scroll cursor for ${sql}`, bindings as string[]);
  for (;;) {
    const { rows } = await trx.raw<{ rows: Record<string, string | null>[] }>(
      `fetch ${rowsAtOnce} from report_rows`,
    );
    if (rows.length === 0) break;
    const cells = rows.map((row) => toRow(report.columns, row));
    hash.add(cells);
    isWrong ||=
      report.failsOn !== undefined && cells.some((row) => row[outcome] === report.failsOn);
    await take(cells);
  }
  await trx.raw("close report_rows");
  return {
    report: report.name,
    explains: report.explains,
    period,
    asOf: asOf ?? (await timeOf(trx)),
    isLive: asOf === null,
    currency,
    close: null,
    proof: isWrong ? failed(proof) : proof,
    ...hash.digest(),
  };
}

/** One moment, never written to, with the memory that sorting a million rows takes. */
export async function readingTransaction<T>(
  db: Knex,
  work: (trx: Knex.Transaction) => Promise<T>,
): Promise<T> {
  return db.transaction(
    async (trx) => {
      await tuneForReports(trx);
      return work(trx);
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
}

/**
 * All rows are wanted, not the first ones; compiling costs more than it saves here. Ids come out of functions in the database's own
 * collation, in which sorting a million of them takes seconds: they are hashed instead.
 */
export async function tuneForReports(trx: Knex.Transaction): Promise<void> {
  await trx.raw(
    `select set_config('work_mem', '128MB', true), set_config('cursor_tuple_fraction', '1', true),
            set_config('jit', 'off', true),
            set_config('enable_mergejoin', 'off', true)`,
  );
}

const toRow = (columns: readonly Column[], row: Record<string, string | null>): Row =>
  columns.map(({ name }) => row[`${name}_text`] ?? null);

/** Rows that differ are worse than what the findings say; an unread part is said first. */
const failed = (proof: Proof): Proof =>
  proof.verdict === "PASS" ? { ...proof, verdict: "FAIL" } : proof;

async function timeOf(trx: Knex.Transaction): Promise<string> {
  const { rows } = await trx.raw<{ rows: { at: Date }[] }>("select now() as at");
  return rows[0]?.at.toISOString() ?? "";
}

/** What a report is asked. */
export interface Question {
  report: Report;
  period: Period;
  /** ISO 8601; null: what the mirror says now. */
  asOf: string | null;
  currency: string | null;
  accounts: AccountMap;
  region: NetworkRegion;
  /** UTC: entries booked before it are final although their month is not closed yet; for the close that does it. */
  finalUntil?: string;
}

/** The statement that answers a question, every cell as text. Pure. */
function rowsQuery({ report, period, asOf, currency, accounts, region, finalUntil }: Question): {
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
    sql: `select ${report.columns.map(asText).join(", ")} from reports.${report.source}(${parameters.join(", ")})
          ${currency === null ? "" : "where currency = ?"} order by ${report.orderBy}`,
    bindings,
  };
}

// An alias would take the column's place in `order by`, and sort as text.
const asText = ({ name, kind }: Column): string =>
  kind === "time"
    ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}_text"`
    : `${name}::text as "${name}_text"`;

export interface RowHash {
  add(rows: readonly Row[]): void;
  /** Ends it. */
  digest(): { rows: number; sha256: string };
}

/** SHA-256 of the column names and of each row as a JSON array, a line each: the same for every format. */
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
 * Where the acquirer is, as far as a card network's thresholds depend on it: in Latin America and the Caribbean, in the
 * Middle East and North Africa, or anywhere else.
 */
export type NetworkRegion = "global" | "lac" | "mena";
