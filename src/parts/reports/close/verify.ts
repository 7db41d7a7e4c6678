import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, exitCodes } from "../../../platform/errors.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import { allReports } from "../catalogue/all.ts";
import {
  type BrokenMember,
  type CloseFacts,
  type Member,
  factDifferences,
  memberDifferences,
  membersOf,
  sha256Of,
} from "./manifest.ts";
import { digestOf, rowsMember, storedMembers, utcText } from "./members.ts";

/** The scope of a close's seal. `rows` and `results` come from earlier versions. */
export type SealScope = "rows" | "results" | "everything";

/** A row of `reports.closes`. */
export interface StoredClose {
  facts: CloseFacts;
  covers: SealScope;
  sha256: string;
  /** Null if an earlier version closed the month. */
  manifest: string | null;
}

/** The result of verifying a close. */
export interface CloseCheck {
  month: string;
  snapshot: string;
  closedAt: string;
  closedBy: string | null;
  /** Null: one person prepared and closed the month. */
  preparedBy: string | null;
  verdict: string;
  covers: SealScope;
  sha256: string;
  /** One sentence each; empty if the close matches its seal. */
  problems: string[];
}

/**
 * SQL for the facts of a row `c` of `reports.closes`. A rehearsed upgrade reads them as the release before left them:
 * without the column `prepared_by`.
 */
export const closeFactColumns = `c.id::text as snapshot, to_char(c.month, 'YYYY-MM') as month, c.time_zone,
  ${utcText("c.from_at")} as "from", ${utcText("c.to_at")} as "to", ${utcText("c.as_of")} as as_of,
  ${utcText("c.closed_at")} as closed_at, c.closed_by, to_jsonb(c) ->> 'prepared_by' as prepared_by, c.verdict,
  c.reason, c.previous_sha256`;

/** All closes, the oldest month first. One statement. */
export async function readCloses(db: Knex): Promise<StoredClose[]> {
  const { rows } = await db.raw<{ rows: (CloseFacts & Omit<StoredClose, "facts">)[] }>(
    `select ${closeFactColumns}, c.sha256_covers as covers, c.sha256, c.manifest
     from reports.closes c order by c.month, c.id`,
  );
  return rows.map(({ covers, sha256, manifest, ...facts }) => ({
    facts,
    covers,
    sha256,
    manifest,
  }));
}

/** Problems in the row of a close, and in its link to the close before it. */
function rowProblems(close: StoredClose, before: StoredClose | null): string[] {
  const { facts, covers, sha256, manifest } = close;
  if (covers !== "everything") {
    if (before?.covers === "everything") {
      return [`it is marked as closed by an earlier version, but ${before.facts.month} before it has a complete seal`];
    }
    const sealedPart = manifest ?? facts.closed_by ?? facts.previous_sha256;
    return sealedPart === null
      ? []
      : ["it is marked as closed by an earlier version, but has parts that those versions did not write"];
  }
  if (manifest === null || sha256Of(manifest) !== sha256) {
    return ["sha256 is not the hash of the manifest: one of them was changed"];
  }
  const linked = before?.sha256 ?? null;
  return [
    ...factDifferences(manifest, facts),
    ...(facts.previous_sha256 === linked
      ? []
      : [
          before === null
            ? "it was sealed after another close, which is missing"
            : `it was sealed after another close than ${before.facts.month} with its present seal (${before.sha256})`,
        ]),
  ];
}

/**
 * Problems in the frozen members of a close.
 *
 * @param wanted chooses the members to verify; the others may even be missing
 */
export async function memberProblems(
  db: Knex,
  { facts, covers, sha256, manifest }: StoredClose,
  wanted: (member: string) => boolean = () => true,
): Promise<string[]> {
  if (covers !== "everything" || manifest === null) {
    return formerProblems(db, { facts, covers, sha256 }, wanted);
  }
  const found: (Member | BrokenMember)[] = [];
  for (const source of await storedMembers(db, facts.snapshot)) {
    if (wanted(source.name)) found.push(await digestOf(source));
  }
  const sealed = membersOf(manifest).filter(({ name }) => wanted(name));
  return memberDifferences(sealed, found);
}

/** Problems in a close of an earlier version, whose seal covers the reports' results and rows. */
async function formerProblems(
  db: Knex,
  { facts, covers, sha256 }: Omit<StoredClose, "manifest">,
  wanted: (member: string) => boolean,
): Promise<string[]> {
  const { rows } = await db.raw<{
    rows: { about: ReportFacts; as_of: Date; is_consistent: boolean }[];
  }>(
    `select r.about, c.as_of,
            r.sha256 = r.about->>'sha256' and r.row_count::text = r.about->>'rows' as is_consistent
     from reports.closes c join reports.closed_reports r on r.close = c.id where c.id = ?`,
    [facts.snapshot],
  );
  const abouts = rows.map(({ about }) => about);
  const asOf = rows[0]?.as_of.toISOString() ?? "";
  const { month, time_zone: timeZone, verdict, reason } = facts;
  const expected =
    covers === "rows" ? rowsSha256(abouts) : resultsSha256({ month, timeZone, asOf, verdict, reason }, abouts);
  const problems = expected === sha256 ? [] : ["its facts or the results of its reports differ from what was signed"];
  for (const { about, is_consistent: isConsistent } of rows) {
    if (!isConsistent) problems.push(`reports/${about.report}/about contradicts its own row`);
  }
  for (const source of await storedMembers(db, facts.snapshot)) {
    const about = abouts.find(({ report }) => rowsMember(report) === source.name);
    if (about === undefined || !wanted(source.name)) continue;
    const found = await digestOf(source);
    if ("problem" in found) problems.push(`${found.name}: ${found.problem}`);
    else if (found.sha256 !== about.sha256) problems.push(`${found.name} differs from what was signed`);
  }
  return problems;
}

const frozenTables = ["closed_reports", "closed_rows", "closed_movements", "closed_evidence"] as const;

/** Tables that hold rows of a close, or of a closed report, which does not exist. */
async function tablesWithOrphans(db: Knex, tables: readonly (typeof frozenTables)[number][]): Promise<string[]> {
  const orphans = tables.map((table) => {
    const [owner, key] =
      table === "closed_rows"
        ? ["closed_reports", "o.close = r.close and o.report = r.report"]
        : ["closes", "o.id = r.close"];
    return `select '${table}' as name from reports.${table} r
            where not exists (select from reports.${owner} o where ${key}) group by 1`;
  });
  const { rows } = await db.raw<{ rows: { name: string }[] }>(orphans.join(" union all "));
  return rows.map(({ name }) => `reports.${name} has rows of a close or a report that is missing`);
}

/** Verifies every close, the oldest first, and searches for rows that belong to none. Reads all frozen rows. */
export async function verifyCloses(db: Knex): Promise<{ closes: CloseCheck[]; problems: string[] }> {
  return db.transaction(
    async (trx) => {
      const closes = await readCloses(trx);
      const checks: CloseCheck[] = [];
      for (const [at, close] of closes.entries()) {
        const row = rowProblems(close, closes[at - 1] ?? null);
        const { facts, covers, sha256 } = close;
        checks.push({
          month: facts.month,
          snapshot: facts.snapshot,
          closedAt: facts.closed_at,
          closedBy: facts.closed_by,
          preparedBy: facts.prepared_by,
          verdict: facts.verdict,
          covers,
          sha256,
          problems: isManifestSound(close) ? [...row, ...(await memberProblems(trx, close))] : row,
        });
      }
      return { closes: checks, problems: await tablesWithOrphans(trx, frozenTables) };
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
}

/** Whether the manifest matches its seal, so that frozen rows can be compared with it. */
const isManifestSound = ({ covers, manifest, sha256 }: StoredClose): boolean =>
  covers !== "everything" || (manifest !== null && sha256Of(manifest) === sha256);

/**
 * Reads the closes and verifies that each row matches its seal and links to the previous close. It reads none of the
 * frozen rows, so it is cheap. Throws `BrokenSealError`.
 */
export async function readIntactCloses(db: Knex): Promise<StoredClose[]> {
  const closes = await readCloses(db);
  for (const [at, close] of closes.entries()) {
    assertUnbroken(close.facts.month, rowProblems(close, closes[at - 1] ?? null));
  }
  assertUnbroken(null, await tablesWithOrphans(db, ["closed_reports"]));
  return closes;
}

/** The meaning of a difference from a seal, and the remedy. */
export const brokenSealAdvice =
  "The database no longer holds what was sealed: schema reports was changed without Tallyhook. Restore it from a " +
  "backup.";

/** Throws `BrokenSealError` with the problems of one month, or of all closes if `month` is null; none: returns. */
export function assertUnbroken(month: string | null, problems: readonly string[]): void {
  const [first, ...others] = problems;
  if (first === undefined) return;
  const of = month === null ? "The closed months do" : `The close of ${month} does`;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  throw new BrokenSealError(
    `${of} not match what was sealed: ${first}${more}. ${brokenSealAdvice} "${tallyhook("close verify")}" lists ` +
      "every difference.",
  );
}

type SignedReport = Pick<ReportFacts, "report" | "period" | "proof" | "rows" | "sha256">;

/** The facts in a close of an earlier version. */
interface Stated {
  month: string;
  timeZone: string;
  /** ISO 8601 with milliseconds. */
  asOf: string;
  verdict: string;
  reason: string | null;
}

/**
 * The seal of a close whose `sha256_covers` is 'results': SHA-256 of its facts about its month and of each report's
 * name, result and rows, one JSON array a line. Only earlier versions sealed this way.
 */
export function resultsSha256(
  { month, timeZone, asOf, verdict, reason }: Stated,
  reports: readonly SignedReport[],
): string {
  const signed = reports.map(({ report, period, proof, rows, sha256 }) => [
    report,
    [period.fromUtc, period.toUtc],
    [proof.verdict, proof.coveragePercent, proof.readUntil, proof.lastRun],
    [proof.openFindings, proof.openWarnings],
    rows,
    sha256,
  ]);
  const byName = signed.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  const lines = [[month, timeZone, asOf, verdict, reason], ...byName];
  return sha256Of(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/**
 * The seal of a close whose `sha256_covers` is 'rows': SHA-256 of the reports' names and the hashes of their rows, in
 * the order of the catalogue. Only earlier versions sealed this way.
 */
export function rowsSha256(reports: readonly Pick<SignedReport, "report" | "sha256">[]): string {
  const place = (name: string): number => allReports.findIndex((report) => report.name === name);
  const inOrder = [...reports].sort((a, b) => place(a.report) - place(b.report));
  return sha256Of(inOrder.map(({ report, sha256 }) => `${report} ${sha256}\n`).join(""));
}

/** A closed month in the database does not match its seal. The message names the differences. */
export class BrokenSealError extends TallyhookError {
  override readonly exitCode = exitCodes.differs;
}
