import type { Knex } from "knex";
import type { Clock } from "../../platform/clock.ts";
import { UsageError } from "../../platform/errors.ts";
import { dayIn } from "../../platform/local-time.ts";
import { currencyDigits } from "../../platform/money.ts";
import type { ReportFacts, StandbyRead } from "./base/report-facts.ts";
import { type AccountMap, defaultAccounts } from "./base/account-map.ts";
import { findCurrency } from "./base/currencies.ts";
import { type Days, assertHistoryFixed, latestAsOf, parseDays, resolvePeriod } from "./base/period.ts";
import { type NetworkRegion, readReport, readingTransaction } from "./base/read-report.ts";
import { type ReportsStandby, assertPrimary, readFromStandby } from "./base/read-standby.ts";
import { type Report, hasCurrency } from "./base/report.ts";
import { findFrozen, readFrozen } from "./close/frozen.ts";
import { type ReportDocument, collectDocument } from "./render/document.ts";
import { type Format, createRendering, formatsOf } from "./render/formats.ts";
import type { Rendering, RenderingInput, Write } from "./render/rendering.ts";

export interface ReportDeps {
  /** The primary. */
  db: Knex;
  /** Reports are read from it. Absent or null: from the primary. */
  standby?: ReportsStandby | null;
  clock: Clock;
  timeZone: string;
  region: NetworkRegion;
  write: Write;
  /** The places of a line that is printed; absent: tables are as wide as their content. */
  width?: number;
}

export interface ReportRequest {
  report: Report;
  format: Format;
  from: string | undefined;
  to: string | undefined;
  asOf: Date | undefined;
  /** Takes the frozen rows of a closed month even if `asOf` is given. */
  prefersFrozen?: boolean;
  currency: string | undefined;
  /** Absent: the default ones, or those that the month was closed with. */
  accounts: AccountMap | undefined;
}

/**
 * Writes a report in the requested format. A closed month gives its frozen rows, unless the request names a time or an
 * account map. Throws `UsageError` if the request cannot be fulfilled, `BrokenSealError` if the frozen rows were
 * changed, and what `readFromStandby` throws.
 */
export const writeReport = async (deps: ReportDeps, { format, ...request }: ReportRequest): Promise<ReportFacts> => {
  assertFormat(request.report, format);
  return makeReport(deps, request, (input) => createRendering(format, input));
};

/** Throws `UsageError` for a format that this report has not. */
function assertFormat(report: Report, format: Format): void {
  const possible = formatsOf(report);
  if (possible.includes(format)) return;
  throw new UsageError(
    `The report ${report.name} cannot be written as ${format}, which is for the journal. Use --format with one of ` +
      `${possible.join(", ")}.`,
  );
}

/** The same for a page that renders itself: the facts, and the first rows. Throws what `writeReport` throws. */
export async function readDocument(
  deps: Omit<ReportDeps, "write">,
  request: Omit<ReportRequest, "format">,
  { shownRows }: { shownRows: number },
): Promise<ReportDocument> {
  let document: ReportDocument | undefined;
  const write: Write = () => Promise.resolve();
  await makeReport({ ...deps, write }, request, (input) =>
    collectDocument(input, { shownRows }, async (whole) => void (document = whole)),
  );
  if (document === undefined) throw new Error("the report has no end");
  return document;
}

/** Throws `UsageError` for a report that books to no accounts. */
export function assertTakesAccounts({ name, takesAccounts }: Report): void {
  if (takesAccounts === true) return;
  throw new UsageError(`The report ${name} uses no accounts: --accounts is for the journal.`);
}

interface Asked {
  request: Omit<ReportRequest, "format">;
  days: Days;
  rendering: (input: RenderingInput) => Rendering;
}

async function makeReport(
  deps: ReportDeps,
  request: Asked["request"],
  rendering: Asked["rendering"],
): Promise<ReportFacts> {
  const { db, standby = null, clock, timeZone } = deps;
  const { report, from, to, asOf, currency: wished } = request;
  const given = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const days = parseDays(given, dayIn(timeZone, clock.now()));
  if (request.accounts !== undefined) assertTakesAccounts(report);
  if (wished !== undefined && !hasCurrency(report)) {
    throw new UsageError(
      `The report ${report.name} has no column currency, so it cannot be limited to one: leave out --currency.`,
    );
  }
  const asked = { request, days, rendering };
  if (standby !== null) {
    return readFromStandby({ db, standby, write: deps.write }, asOf, (from, write) =>
      readAndRender({ ...deps, ...from, write }, asked),
    );
  }
  await assertPrimary(db);
  if (asOf !== undefined) assertHistoryFixed(asOf, await latestAsOf(db));
  return readAndRender({ ...deps, standby: null }, asked);
}

/** `standby`: how far `db` is, if it is one. */
async function readAndRender(
  { db, standby, timeZone, region, write, width }: Reading,
  { request, days, rendering: renderingOf }: Asked,
): Promise<ReportFacts> {
  const { report, asOf, currency: wished, accounts } = request;
  return readingTransaction(db, async (trx) => {
    const currency = wished === undefined ? null : await findCurrency(trx, wished);
    const period = await resolvePeriod(trx, days, timeZone);
    const isFrozenWanted = (asOf === undefined || request.prefersFrozen === true) && accounts === undefined;
    const frozen = isFrozenWanted ? await findFrozen(trx, period, report) : null;
    const { columns } = frozen ?? report;
    const exponents = frozen?.exponents ?? currencyDigits;
    const rendering = renderingOf({ report, columns, exponents, write, width });
    const take = rendering.rows;
    const read =
      frozen === null
        ? await readReport(
            trx,
            {
              report,
              period,
              asOf: asOf?.toISOString() ?? null,
              currency,
              accounts: accounts ?? defaultAccounts,
              region,
            },
            take,
          )
        : await readFrozen(trx, frozen, currency, take);
    const about = standby === null ? read : ofStandby(read, standby);
    await rendering.end(about);
    return about;
  });
}

interface Reading extends Omit<ReportDeps, "standby" | "clock"> {
  standby: StandbyRead | null;
}

/** Live data on a standby is as of its replay. */
const ofStandby = (read: ReportFacts, standby: StandbyRead): ReportFacts => ({
  ...read,
  ...(read.isLive ? { asOf: standby.replayedUntil } : {}),
  standby,
});
