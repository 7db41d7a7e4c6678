import type { Knex } from "knex";
import { ActRefused } from "../../../app/people/act.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import type { AccountMap } from "../base/account-map.ts";
import { type Period, latestAsOf, parseDays, resolvePeriod } from "../base/period.ts";
import {
  type NetworkRegion,
  type TakeRows,
  readReport,
  readingTransaction,
  tuneForReports,
} from "../base/read-report.ts";
import type { Report } from "../base/report.ts";
import { allReports } from "../catalogue/all.ts";
import { CloseRefused, type CloseRefusal } from "./hindrance.ts";
import { type CloseFacts, type Member, manifestText, sha256Of } from "./manifest.ts";
import { digestOf, freezeEvidence, rowsMember, storedMembers } from "./members.ts";
import { assertClosable, whyNotProved } from "./refusal.ts";
import { assertUnbroken, closeFactColumns, memberProblems, readIntactCloses } from "./verify.ts";

export interface CloseRequest {
  month: string;
  timeZone: string;
  accounts: AccountMap;
  /** The acquirer's region; default: global. */
  region?: NetworkRegion;
  /** The reason for closing a month that is not proved; null: such a close is refused. */
  reason: string | null;
  /** The person who closes the month. */
  by: string;
  /** The person who prepared it; absent: the same one. */
  preparedBy?: string;
}

/** Called before each report is read, which may take seconds. */
export type TellProgress = (next: { report: string; done: number; of: number }) => void;

/** Further steps of a close. */
export interface CloseSteps {
  tell?: TellProgress | undefined;
  /** Called in the transaction of the close, under its lock, as its first step. If it throws, the close is refused. */
  before?: (trx: Knex.Transaction) => Promise<void>;
  /** Called in that transaction, after the seal; if it throws, the close fails. */
  after?: (trx: Knex.Transaction, close: Close) => Promise<void>;
}

/** The movements of one kind and currency that are booked in a month. */
export interface Booked {
  currency: string;
  /** For example `sale`. */
  kind: string;
  isLate: boolean;
  movements: string;
  /** Minor units, signed. */
  amount: string;
}

/** The content of a close, and whether it would be refused. */
export interface ClosePreview {
  month: string;
  asOf: string;
  verdict: string;
  reason: string | null;
  by: string;
  reports: readonly ReportFacts[];
  booked: readonly Booked[];
  /** The reason why the close would be refused; null if it would not. */
  refusal: CloseRefusal | null;
}

export interface Close {
  id: string;
  month: string;
  asOf: string;
  closedAt: string;
  closedBy: string;
  /** Absent where they prepared the month themselves. */
  preparedBy?: string;
  verdict: string;
  /** Hash of the manifest. Through it, it covers all that was frozen and the close before. */
  sha256: string;
  previousSha256: string | null;
  reports: readonly ReportFacts[];
}

/**
 * Shows the rows that `closeMonth` would freeze, as of a minute ago. Writes nothing. Throws `CloseRefused` if the month
 * cannot be closed at all, `BrokenSealError` if an earlier close was changed.
 */
export async function previewClose(
  db: Knex,
  request: CloseRequest,
  tell: TellProgress = () => {},
): Promise<ClosePreview> {
  return readingTransaction(db, async (trx) => {
    const latest = await latestAsOf(trx);
    const read = await readMonth(trx, request, latest, () => () => {}, tell);
    const { asOf, period, verdict, abouts, refusal } = read;
    const { month, by } = request;
    const booked = await sumBooked(trx, { asOf, toUtc: period.toUtc });
    const reason = reasonPrinted(verdict, request);
    return { month, asOf, verdict, reason, by, reports: abouts, booked, refusal };
  });
}

/**
 * Freezes a month: the rows of every report as of a minute ago, the booked movements and the evidence, all under one
 * hash that also covers the previous close. Opens its own transaction. Months are closed in order, each only once.
 * Throws `CloseRefused` if the month may not be closed, `BrokenSealError` if an earlier close was changed.
 *
 * @param shown the preview that a person agreed to: exactly that is frozen, or nothing
 */
export async function closeMonth(
  db: Knex,
  request: CloseRequest,
  shown?: Pick<ClosePreview, "asOf" | "reports">,
  { tell = () => {}, before = async () => {}, after = async () => {} }: CloseSteps = {},
): Promise<Close> {
  return db.transaction(
    async (trx) => {
      // Closes run one at a time. Unlike a query, `lock table` does not yet fix the moment at which this transaction
      // reads: after the wait it sees the other close.
      await trx.raw("lock table reports.closes in share row exclusive mode");
      await tuneForReports(trx);
      await before(trx);
      const at = shown === undefined ? await latestAsOf(trx) : new Date(shown.asOf);
      const id = await nextId(trx);
      const take = (report: Report) => freezeRows(trx, id, report);
      const read = await readMonth(trx, request, at, take, tell);
      const { asOf, period, verdict, abouts, refusal } = read;
      if (refusal !== null) throw new CloseRefused(refusal);
      if (shown !== undefined && JSON.stringify(shown.reports) !== JSON.stringify(abouts)) {
        throw new ChangedSinceShown(request.month, reportChanges(shown.reports, abouts));
      }
      for (const [n, report] of allReports.entries()) await freezeAbout(trx, id, report, abouts[n]);
      await freezeMovements(trx, id, { asOf, toUtc: period.toUtc });
      await freezeEvidence(trx, id, { asOf, fromUtc: period.fromUtc });
      const reason = reasonPrinted(verdict, request);
      const close = await seal(trx, { id, period, asOf, verdict, reason, previous: read.previous }, request, abouts);
      await after(trx, close);
      return close;
    },
    { isolationLevel: "repeatable read" },
  );
}

/** The close would differ from the one that a person agreed to. */
export class ChangedSinceShown extends ActRefused {
  /** One sentence each. */
  readonly changes: readonly string[];

  constructor(month: string, changes: readonly string[]) {
    super(
      "outdated",
      `The reports of ${month} have changed since they were shown, so nothing was frozen. Look at them again. ` +
        changes.join(" "),
    );
    this.changes = changes;
  }
}

/** The differences between these reports and those that were shown, a sentence each. */
function reportChanges(shown: readonly ReportFacts[], found: readonly ReportFacts[]): string[] {
  const after = new Map(found.map((about) => [about.report, about]));
  const changes = shown.flatMap(({ report, sha256, rows, proof: { verdict } }) => {
    const now = after.get(report);
    if (now === undefined) return [`The report ${report} is gone.`];
    if (now.sha256 !== sha256) {
      return [
        `The rows of ${report} have changed: ${rows} with SHA-256 ${sha256} were shown, ${now.rows} with ${now.sha256} are found.`,
      ];
    }
    return now.proof.verdict === verdict
      ? []
      : [`The verdict of ${report} was ${verdict}, and is ${now.proof.verdict}.`];
  });
  const known = new Set(shown.map(({ report }) => report));
  const more = found.filter(({ report }) => !known.has(report));
  const all = [...changes, ...more.map(({ report }) => `The report ${report} is new.`)];
  return all.length > 0 ? all : ["The facts above a report's rows have changed."];
}

/** A close with the verdict PASS needs no reason, so none is kept with it. */
const reasonPrinted = (verdict: string, { reason }: CloseRequest): string | null =>
  verdict === "PASS" ? null : reason;

interface MonthRead {
  asOf: string;
  period: Period;
  verdict: string;
  /** In the catalogue's order. */
  abouts: ReportFacts[];
  refusal: CloseRefusal | null;
  /** `sha256` of the close before; null for the first close. */
  previous: string | null;
}

/** Reads every report of a month that may be closed. `takeOf` gives what takes the rows of a report. */
async function readMonth(
  trx: Knex.Transaction,
  request: CloseRequest,
  at: Date,
  takeOf: (report: Report) => TakeRows,
  tell: TellProgress,
): Promise<MonthRead> {
  const { month, timeZone, accounts, region = "global", reason } = request;
  const period = await resolvePeriod(trx, parseDays({ from: month }, month), timeZone);
  await assertClosable(trx, month, period, at);
  const closes = await readIntactCloses(trx);
  // The opening balance depends on the movements booked before; the rows printed then do not matter here.
  for (const close of closes) {
    const isBooked = (member: string): boolean => member === "movements";
    assertUnbroken(close.facts.month, await memberProblems(trx, close, isBooked));
  }
  const asOf = at.toISOString();
  const abouts: ReportFacts[] = [];
  const differing = new Map<string, string[]>();
  for (const [done, report] of allReports.entries()) {
    tell({ report: report.name, done, of: allReports.length });
    const [take, days] = [takeOf(report), daysThatDiffer(report)];
    const scope = { period, asOf, currency: null, accounts, region };
    const question = { report, ...scope, finalUntil: period.toUtc };
    abouts.push(
      await readReport(trx, question, async (rows) => {
        days.add(rows);
        await take(rows);
      }),
    );
    differing.set(report.name, days.found());
  }
  const worst = abouts.find(({ proof }) => proof.verdict !== "PASS") ?? abouts[0];
  if (worst === undefined) throw new Error("there are no reports");
  const { verdict } = worst.proof;
  const isRefused = verdict !== "PASS" && reason === null;
  const refusal = isRefused ? await whyNotProved(trx, { month, period, asOf, abouts, differing }) : null;
  return { asOf, period, verdict, abouts, refusal, previous: closes.at(-1)?.sha256 ?? null };
}

/** Collects the days of the rows that make a report fail. */
function daysThatDiffer({ columns, failsOn }: Report) {
  const [outcome, day] = [
    columns.findIndex(({ name }) => name === "outcome"),
    columns.findIndex(({ kind }) => kind === "day"),
  ];
  const found = new Set<string>();
  return {
    add: ((rows) => {
      if (failsOn === undefined) return;
      for (const row of rows) if (row[outcome] === failsOn) found.add(row[day] ?? "");
    }) satisfies TakeRows,
    found: (): string[] => [...found].sort(),
  };
}

async function nextId(trx: Knex.Transaction): Promise<string> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    "select coalesce(max(id), 0) + 1 as id from reports.closes",
  );
  return rows[0]?.id ?? "1";
}

function freezeRows(trx: Knex.Transaction, close: string, { name }: Report): TakeRows {
  let n = 0;
  return async (rows) => {
    await trx.raw(
      `insert into reports.closed_rows (close, report, n, cells)
       select ?, ?, ? + n, array(select jsonb_array_elements_text(row))
       from jsonb_array_elements(?::jsonb) with ordinality as given(row, n)`,
      [close, name, n, JSON.stringify(rows)],
    );
    n += rows.length;
  };
}

async function freezeAbout(
  trx: Knex.Transaction,
  close: string,
  { name, columns }: Report,
  about: ReportFacts | undefined,
): Promise<void> {
  if (about?.report !== name) throw new Error(`${name} was not read`);
  await trx("reports.closed_reports").insert({
    close,
    report: name,
    columns: JSON.stringify(columns),
    about: JSON.stringify(about),
    row_count: about.rows,
    sha256: about.sha256,
  });
}

interface Until {
  /** ISO 8601. */
  asOf: string;
  toUtc: string;
}

/** Movements `m` booked before the end of the month and not in an earlier close. Bindings: as of, end. */
const openMovements = `reports.booked_movements(?) m
  where m.booked_at < ? and m.booked_at >= coalesce((select max(to_at) from reports.closes), '-infinity')`;

async function freezeMovements(trx: Knex.Transaction, close: string, { asOf, toUtc }: Until): Promise<void> {
  await trx.raw(
    `insert into reports.closed_movements
       (close, movement, kind, object_id, order_id, at, booked_at, is_late, currency, amount)
     select ?, m.movement, m.kind, m.object_id, m.order_id, m.at, m.booked_at, m.is_late, m.currency, m.amount
     from ${openMovements}`,
    [close, asOf, toUtc],
  );
}

/** The movements booked in a month, summed by currency and kind, as of a time. One statement. */
export async function sumBooked(trx: Knex.Transaction, { asOf, toUtc }: Until): Promise<Booked[]> {
  const { rows } = await trx.raw<{ rows: Booked[] }>(
    `select m.currency, m.kind, m.is_late as "isLate", count(*)::text as movements, sum(m.amount)::text as amount
     from ${openMovements} group by 1, 2, 3 order by 1, 3, 2`,
    [asOf, toUtc],
  );
  return rows;
}

/**
 * A mark of the movements that are booked in a month: as of two times it is the same if and, but for chance, only if
 * they are. It is no seal. One statement.
 */
export async function markOfBooked(trx: Knex.Transaction, { asOf, toUtc }: Until): Promise<string> {
  const { rows } = await trx.raw<{ rows: { mark: string }[] }>(
    `select count(*) || ' ' || coalesce(sum(hashtextextended(m::text, 0)::numeric), 0) as mark from ${openMovements}`,
    [asOf, toUtc],
  );
  return rows[0]?.mark ?? "";
}

interface ToSeal {
  id: string;
  period: Period;
  asOf: string;
  verdict: string;
  reason: string | null;
  previous: string | null;
}

/** Hashes the stored rows, not the rows as they were sent, and writes the close. Must be the last step. */
async function seal(
  trx: Knex.Transaction,
  { id, period, asOf, verdict, reason, previous }: ToSeal,
  { month, timeZone, by, preparedBy }: CloseRequest,
  abouts: readonly ReportFacts[],
): Promise<Close> {
  const members: Member[] = [];
  for (const source of await storedMembers(trx, id)) {
    const member = await digestOf(source);
    if ("problem" in member) throw new Error(`${member.name}: ${member.problem}`);
    members.push(member);
  }
  assertRowsAreThose(abouts, members);
  // `closed_at` is taken last, just before the commit: a report as of a time includes the closes made by then.
  const facts = await factsOf(trx, {
    id,
    month: period.from,
    time_zone: timeZone,
    from_at: period.fromUtc,
    to_at: period.toUtc,
    as_of: asOf,
    closed_by: by,
    prepared_by: preparedBy ?? null,
    verdict,
    reason,
    previous_sha256: previous,
  });
  const manifest = manifestText({ facts, members });
  const sha256 = sha256Of(manifest);
  await trx("reports.closes").insert({
    id,
    month: period.from,
    time_zone: timeZone,
    from_at: facts.from,
    to_at: facts.to,
    as_of: facts.as_of,
    closed_at: facts.closed_at,
    closed_by: by,
    prepared_by: preparedBy ?? null,
    verdict,
    reason,
    previous_sha256: previous,
    manifest,
    sha256,
    sha256_covers: "everything",
  });
  return {
    id,
    month,
    asOf,
    closedAt: facts.closed_at,
    closedBy: by,
    ...(preparedBy === undefined ? {} : { preparedBy }),
    verdict,
    sha256,
    previousSha256: previous,
    reports: abouts,
  };
}

/** Asserts that the hash printed on each report is the one in the manifest. */
function assertRowsAreThose(abouts: readonly ReportFacts[], members: readonly Member[]): void {
  for (const { report, sha256 } of abouts) {
    const member = members.find(({ name }) => name === rowsMember(report));
    if (member?.sha256 !== sha256) throw new Error(`the rows of ${report} were not stored as they were read`);
  }
}

/** The facts of the close being made, as they will be read back from its row. */
async function factsOf(trx: Knex.Transaction, row: Readonly<Record<string, string | null>>): Promise<CloseFacts> {
  const { rows } = await trx.raw<{ rows: CloseFacts[] }>(
    `select ${closeFactColumns}
     from jsonb_populate_record(null::reports.closes,
            ?::jsonb || jsonb_build_object('closed_at', clock_timestamp())) c`,
    [JSON.stringify(row)],
  );
  const [facts] = rows;
  if (facts === undefined) throw new Error("the database did not state the facts of the close");
  return facts;
}
