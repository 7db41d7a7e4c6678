import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import type { Exponents } from "../base/currencies.ts";
import type { Period } from "../base/period.ts";
import { type TakeRows, createRowHash } from "../base/read-report.ts";
import type { Column, Report, Row } from "../base/report.ts";
import type { Write } from "../render/rendering.ts";
import { type BrokenMember, type Member, memberDifferences, membersOf } from "./manifest.ts";
import { digestOf, evidenceMember, rowsMember, storedMembers } from "./members.ts";
import { type StoredClose, assertUnbroken, memberProblems, readIntactCloses } from "./verify.ts";

export interface FrozenReport {
  close: StoredClose;
  report: string;
  columns: readonly Column[];
  about: ReportFacts;
  /** Decimals of the currencies at that time; null if an earlier version closed the month. */
  exponents: Exponents | null;
}

/**
 * Finds a frozen report of exactly this period; null unless it is a closed month and the report existed when it was
 * closed. Throws `BrokenSealError` if the closes, or the facts that this one froze about its reports, were changed.
 */
export async function findFrozen(
  db: Knex,
  { from, to, timeZone }: Pick<Period, "from" | "to" | "timeZone">,
  { name }: Pick<Report, "name">,
): Promise<FrozenReport | null> {
  const closes = await readIntactCloses(db);
  const close = closes.find(({ facts }) => facts.time_zone === timeZone && isWhole(facts.month, { from, to }));
  if (close === undefined) return null;
  const { month } = close.facts;
  const others = (member: string): boolean => !member.endsWith("/rows");
  assertUnbroken(month, await memberProblems(db, close, others));
  const { rows } = await db.raw<{ rows: Pick<FrozenReport, "columns" | "about">[] }>(
    `select columns, about from reports.closed_reports where close = ? and report = ?`,
    [close.facts.snapshot, name],
  );
  const [found] = rows;
  if (found === undefined) return null;
  const { facts, sha256 } = close;
  const mark = {
    month,
    id: facts.snapshot,
    closedAt: facts.closed_at,
    closedBy: facts.closed_by,
    ...(facts.prepared_by === null ? {} : { preparedBy: facts.prepared_by }),
    reason: facts.reason,
    sha256,
  };
  const about = { ...found.about, close: mark };
  const exponents = close.manifest === null ? null : await frozenExponents(db, facts.snapshot);
  return { close, report: name, columns: found.columns, about, exponents };
}

/** Whether a period is exactly this month, from its first to its last day. */
function isWhole(month: string, { from, to }: Pick<Period, "from" | "to">): boolean {
  const [year, number] = month.split("-").map(Number);
  const last = new Date(Date.UTC(year ?? 0, number ?? 1, 0)).toISOString().slice(0, 10);
  return from === `${month}-01` && to === last;
}

async function frozenExponents(db: Knex, close: string): Promise<Exponents> {
  const exponents = new Map<string, number>();
  await evidenceMember(db, close, "currencies").read((lines) => {
    for (const line of lines) {
      const { code, exponent } = JSON.parse(line) as { code: string; exponent: number };
      exponents.set(code, exponent);
    }
  });
  return exponents;
}

/**
 * Gives the frozen rows to `take`, all or those of one currency. Computes their hash again, and throws
 * `BrokenSealError` after the last row if it is not the sealed one.
 */
export async function readFrozen(
  db: Knex,
  { close, report, columns, about }: FrozenReport,
  currency: string | null,
  take: TakeRows,
): Promise<ReportFacts> {
  const given = createRowHash(columns);
  const currencyAt = columns.findIndex(({ name }) => name === "currency");
  let isFirst = true;
  const name = rowsMember(report);
  const members = await storedMembers(db, close.facts.snapshot);
  const source = members.find((member) => member.name === name);
  if (source === undefined) throw new Error(`${name} is missing, although its report was found`);
  const found = await digestOf(source, async (lines) => {
    // The first line holds the column names.
    const rows = (isFirst ? lines.slice(1) : lines).map((line) => JSON.parse(line) as Row);
    isFirst = false;
    const wanted = currency === null ? rows : rows.filter((row) => row[currencyAt] === currency);
    given.add(wanted);
    if (wanted.length > 0) await take(wanted);
  });
  if ("problem" in found) assertUnbroken(close.facts.month, [`${name}: ${found.problem}`]);
  else if (found.sha256 !== about.sha256) {
    assertUnbroken(close.facts.month, [`${name} differs from what was sealed`]);
  }
  return { ...about, currency, ...given.digest() };
}

const bundleVersion = 1;

/**
 * Writes a whole close as lines of text, the same bytes each time: a head, its manifest, then the lines of each member
 * in the manifest's order. docs/finance.md describes the format; docs/verify-close.mjs verifies it. Throws `UsageError`
 * if there is no such close, `BrokenSealError` if it does not match its seal. After an error, discard the written part.
 */
export async function writeBundle(db: Knex, month: string, write: Write): Promise<StoredClose> {
  return db.transaction(
    async (trx) => {
      const closes = await readIntactCloses(trx);
      const close = closes.find(({ facts }) => facts.month === month);
      if (close === undefined) throw new UsageError(notClosed(month, closes));
      const { manifest, sha256 } = close;
      if (manifest === null) {
        throw new UsageError(
          `${month} cannot be exported: an earlier version closed it, and sealed no manifest. Its reports can be ` +
            `written one by one ("${tallyhook(`report NAME --from ${month} --out FILE`)}").`,
        );
      }
      const lines = manifest.trimEnd().split("\n").length;
      const head = { tallyhook_close_bundle: bundleVersion, manifest_lines: lines, sha256 };
      await write(`${JSON.stringify(head)}\n${manifest}`);
      const found: (Member | BrokenMember)[] = [];
      for (const source of await storedMembers(trx, close.facts.snapshot)) {
        const put = (batch: readonly string[]) => write(batch.map((line) => `${line}\n`).join(""));
        found.push(await digestOf(source, put));
      }
      assertUnbroken(month, memberDifferences(membersOf(manifest), found));
      return close;
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
}

function notClosed(month: string, closes: readonly StoredClose[]): string {
  const [first, last] = [closes[0]?.facts.month, closes.at(-1)?.facts.month];
  const there = first === undefined ? "No month is" : first === last ? `${first} is` : `${first} to ${last} are`;
  return `${month} is not closed. ${there} closed.`;
}
