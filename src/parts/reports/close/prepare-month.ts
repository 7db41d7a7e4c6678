import type { Knex } from "knex";
import { ActRefused, outdated } from "../../../app/people/act.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { amountWithoutCode } from "../../../platform/money.ts";
import { counted } from "../../../platform/readable-text.ts";
import { redacted } from "../../../platform/redaction.ts";
import type { AccountMap } from "../base/account-map.ts";
import { latestAsOf, parseDays, resolvePeriod } from "../base/period.ts";
import { type NetworkRegion, readingTransaction } from "../base/read-report.ts";
import { type ReportFacts, type Verdict, readProof } from "../base/report-facts.ts";
import { allReports } from "../catalogue/all.ts";
import { CloseRefused } from "./hindrance.ts";
import {
  type Booked,
  ChangedSinceShown,
  type Close,
  type CloseRequest,
  type TellProgress,
  closeMonth,
  markOfBooked,
  previewClose,
  sumBooked,
} from "./close-month.ts";

/** The person who prepares or approves. */
export interface Signer {
  /** The name in the record of the close. */
  name: string;
  /** The signed-in account; null: a command, which only has the name. */
  accountId: number | null;
}

/** A month prepared by one person for another to close: exactly this is frozen, or nothing. */
export interface Preparation {
  id: number;
  month: string;
  timeZone: string;
  /** ISO 8601. */
  asOf: string;
  preparedAt: Date;
  preparedBy: Signer;
  verdict: Verdict;
  reason: string | null;
  accounts: AccountMap;
  reports: readonly ReportFacts[];
  booked: readonly Booked[];
  /** `markOfBooked`. */
  movementsMark: string;
}

export interface PrepareRequest extends Omit<CloseRequest, "by" | "preparedBy"> {
  by: Signer;
}

interface PrepareSteps {
  tell?: TellProgress | undefined;
  /** The number of the preparation that this one replaces; null: there is none. Absent: any. */
  replaces?: number | null;
  /** Called in the transaction that writes it. */
  record?: (trx: Knex.Transaction, preparation: Preparation) => Promise<void>;
}

/**
 * Prepares a month for another person to close: computes everything that `previewClose` does, and stores the result. An
 * earlier preparation of the month ends. Throws `CloseRefused` where a close would be refused, `ActRefused` where
 * another preparation stands than the one to replace, and the errors of `previewClose`.
 */
export async function prepareMonth(
  db: Knex,
  { by, ...request }: PrepareRequest,
  { tell, replaces, record = async () => {} }: PrepareSteps = {},
): Promise<Preparation> {
  const preview = await previewClose(db, { ...request, by: by.name }, tell);
  if (preview.refusal !== null) throw new CloseRefused(preview.refusal);
  const { month, timeZone, accounts } = request;
  const { asOf } = preview;
  const movementsMark = await readingTransaction(db, async (trx) => {
    const { toUtc } = await resolvePeriod(trx, parseDays({ from: month }, month), timeZone);
    return markOfBooked(trx, { asOf, toUtc });
  });
  return inTransaction(db, async (trx) => {
    // Two concurrent preparations run one after the other, and the second ends the first.
    await trx.raw("lock table reports.preparations in share row exclusive mode");
    const earlier = await findPreparation(trx, month);
    if (replaces !== undefined && (earlier?.id ?? null) !== replaces) {
      throw outdated(`The preparation of ${month}`);
    }
    if (earlier !== null) await endPreparation(trx, earlier.id, by, "replaced");
    const [row] = await trx("reports.preparations")
      .insert({
        month: `${month}-01`,
        time_zone: timeZone,
        as_of: asOf,
        prepared_by: by.name,
        account_id: by.accountId,
        verdict: preview.verdict,
        reason: preview.reason,
        accounts: JSON.stringify(accounts),
        reports: JSON.stringify(preview.reports),
        booked: JSON.stringify(preview.booked),
        movements_mark: movementsMark,
      })
      .returning<{ id: string }[]>("id");
    const preparation = await findPreparation(trx, month);
    if (preparation === null || String(preparation.id) !== row?.id) {
      throw new ActRefused("hindered", `${month} has been closed since, so there is nothing to prepare.`);
    }
    await record(trx, preparation);
    return preparation;
  });
}

/** The standing preparation of a month: it has no end, and the month is not closed. Null: none. One statement. */
export async function findPreparation(db: Knex, month: string): Promise<Preparation | null> {
  const { rows } = await db.raw<{ rows: StoredPreparation[] }>(
    `select p.id, to_char(p.month, 'YYYY-MM') as month, p.time_zone, p.as_of, p.prepared_at, p.prepared_by,
            p.account_id, p.verdict, p.reason, p.accounts, p.reports, p.booked, p.movements_mark
     from reports.preparations p
     where p.month = to_date(? || '-01', 'YYYY-MM-DD')
       and not exists (select from reports.preparation_ends e where e.preparation = p.id)
       and not exists (select from reports.closes c where c.month = p.month)
     order by p.id desc limit 1`,
    [month],
  );
  const [row] = rows;
  if (row === undefined) return null;
  return {
    id: Number(row.id),
    month: row.month,
    timeZone: row.time_zone,
    asOf: row.as_of.toISOString(),
    preparedAt: row.prepared_at,
    preparedBy: {
      name: row.prepared_by,
      accountId: row.account_id === null ? null : Number(row.account_id),
    },
    verdict: row.verdict,
    reason: row.reason,
    accounts: row.accounts,
    reports: row.reports,
    booked: row.booked,
    movementsMark: row.movements_mark,
  };
}

interface StoredPreparation {
  id: string;
  month: string;
  time_zone: string;
  as_of: Date;
  prepared_at: Date;
  prepared_by: string;
  account_id: string | null;
  verdict: Verdict;
  reason: string | null;
  accounts: AccountMap;
  reports: ReportFacts[];
  booked: Booked[];
  movements_mark: string;
}

/** Takes a preparation back. Returns false if it stands no more. Needs a transaction. */
export async function withdrawPreparation(
  trx: Knex.Transaction,
  { id, month }: Pick<Preparation, "id" | "month">,
  by: Signer,
): Promise<boolean> {
  if ((await findPreparation(trx, month))?.id !== id) return false;
  return endPreparation(trx, id, by, "withdrawn");
}

async function endPreparation(
  trx: Knex.Transaction,
  id: number,
  by: Signer,
  how: "closed" | "withdrawn" | "replaced",
): Promise<boolean> {
  const ended = await trx("reports.preparation_ends")
    .insert({ preparation: id, ended_by: by.name, account_id: by.accountId, how })
    .onConflict()
    .ignore()
    .returning("preparation");
  return ended.length > 0;
}

/** Whether two signers are one person, as far as the data shows. */
export const isSamePerson = (one: Signer, other: Signer): boolean =>
  (one.accountId !== null && one.accountId === other.accountId) || comparable(one.name) === comparable(other.name);

const comparable = (name: string): string => name.normalize("NFKC").trim().replaceAll(/\s+/gu, " ").toLowerCase();

export interface Approval {
  /** From `findPreparation`. */
  preparation: Preparation;
  by: Signer;
  /** The present setting. */
  timeZone: string;
  region: NetworkRegion;
  /** Whether the month needs another person than the one who prepared it. */
  fourEyes: boolean;
}

interface ApproveSteps {
  tell?: TellProgress | undefined;
  /** Called in the transaction of the close, before it reads. If it throws, the close is refused. */
  check?: (trx: Knex.Transaction) => Promise<void>;
  /** Called in the same transaction, after the seal. */
  record?: (trx: Knex.Transaction, close: Close) => Promise<void>;
}

/** The reason why this person may not close the preparation; null if they may. */
export function whyNotApprove({
  preparation,
  by,
  fourEyes,
}: Pick<Approval, "preparation" | "by" | "fourEyes">): ActRefused | null {
  if (preparation.reason === redacted) {
    return new ActRefused(
      "forbidden",
      `The reason of this preparation named a customer who was erased since. Prepare ${preparation.month} again, with ` +
        "a reason that names no person.",
    );
  }
  if (!fourEyes || !isSamePerson(preparation.preparedBy, by)) return null;
  return new ActRefused(
    "forbidden",
    `${preparation.preparedBy.name} prepared ${preparation.month}, so another person has to close it ` +
      "(REPORTS_CLOSE_FOUR_EYES).",
  );
}

/**
 * Closes a month that was prepared, as of the time of its preparation. Computes everything again: the reports as of
 * that time must equal the prepared ones, and the month's bookings and verdict must be the same as of now. Opens its
 * own transaction. Throws `ChangedSinceShown` otherwise, `ActRefused` where the preparation was ended or this person
 * may not close it, and what `closeMonth` throws.
 */
export async function approveMonth(
  db: Knex,
  approval: Approval,
  { tell, check = async () => {}, record = async () => {} }: ApproveSteps = {},
): Promise<Close> {
  const { preparation, by, timeZone, region } = approval;
  const { id, month, accounts, reason, preparedBy } = preparation;
  const refusal = whyNotApprove(approval);
  if (refusal !== null) throw refusal;
  const isByTwo = !isSamePerson(preparedBy, by);
  const request: CloseRequest = {
    month,
    timeZone,
    accounts,
    region,
    reason,
    by: by.name,
    ...(isByTwo ? { preparedBy: preparedBy.name } : {}),
  };
  const gone = () => outdated(`The preparation of ${month}`);
  try {
    return await closeMonth(db, request, preparation, {
      tell,
      async before(trx) {
        await check(trx);
        if ((await findPreparation(trx, month))?.id === id) return assertAsPrepared(trx, approval);
        const [closed] = await trx("reports.closes")
          .where({ month: `${month}-01` })
          .pluck("id");
        // `closeMonth` reports that it is already closed.
        if (closed === undefined) throw gone();
      },
      async after(trx, close) {
        if (!(await endPreparation(trx, id, by, "closed"))) throw gone();
        await record(trx, close);
      },
    });
  } catch (error) {
    // Its end was written while the reports were read: this transaction does not see it, and cannot write another.
    if (errorCode(error) === "40001") throw gone();
    throw error;
  }
}

/**
 * Throws `ChangedSinceShown` if later knowledge books other movements in the month, or changes its verdict. Report rows
 * about a later time, such as the amounts past due now, may change: the close is as of then.
 */
async function assertAsPrepared(trx: Knex.Transaction, approval: Approval): Promise<void> {
  const { preparation, timeZone } = approval;
  const { month, booked, movementsMark } = preparation;
  const period = await resolvePeriod(trx, parseDays({ from: month }, month), timeZone);
  const asOf = (await latestAsOf(trx)).toISOString();
  const until = { asOf, toUtc: period.toUtc };
  const changes: string[] = [];
  if (timeZone !== preparation.timeZone) {
    changes.push(`It was prepared in time zone ${preparation.timeZone}, and TALLYHOOK_TIME_ZONE is ${timeZone}.`);
  } else if ((await markOfBooked(trx, until)) !== movementsMark) {
    const sums = bookedChanges(booked, await sumBooked(trx, until));
    changes.push(
      ...(sums.length > 0 ? sums : ["Movements that are booked in it have changed, and their sums have not."]),
    );
  }
  const then = verdictOfAll(preparation.reports);
  const { verdict: now, openFindings } = await readProof(trx, period, asOf);
  if (now !== then) {
    const found = openFindings === "0" ? "" : ` (open findings: ${openFindings})`;
    changes.push(`The verdict was ${then}, and is ${now}${found}.`);
  }
  if (changes.length > 0) throw new ChangedSinceShown(month, changes);
}

/** The verdict without that of a single report's rows. */
const verdictOfAll = (reports: readonly ReportFacts[]): Verdict =>
  reports.find(({ report }) => allReports.find(({ name }) => name === report)?.failsOn === undefined)?.proof.verdict ??
  "INCOMPLETE";

/** Differences between sums, a sentence each. */
function bookedChanges(before: readonly Booked[], after: readonly Booked[]): string[] {
  const key = ({ currency, kind, isLate }: Booked) => `${currency} ${kind}${isLate ? ", late" : ""}`;
  const [old, found] = [before, after].map((all) => new Map(all.map((each) => [key(each), each])));
  const names = [...new Set([...(old?.keys() ?? []), ...(found?.keys() ?? [])])].sort();
  return names.flatMap((name) => {
    const [was, is] = [old, found].map((sums) => inWords(sums?.get(name)));
    return was === is ? [] : [`Booked as ${name}: it was ${was}, and is ${is}.`];
  });
}

const inWords = (sum: Booked | undefined): string =>
  sum === undefined
    ? "nothing"
    : `${counted(sum.movements, "movement")} of ${amountWithoutCode(sum.amount, sum.currency)}`;
