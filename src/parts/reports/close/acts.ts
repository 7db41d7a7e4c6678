import type { Knex } from "knex";
import { type Act, type ActCall, ActRefused, outdated, recordOf } from "../../../app/people/act.ts";
import { type Field, optional, text } from "../../../app/people/fields.ts";
import { longLine } from "../../../platform/free-text.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import type { AccountMap } from "../base/account-map.ts";
import { earliestDay, isMonth, latestDay } from "../base/period.ts";
import type { NetworkRegion } from "../base/read-report.ts";
import { type Close, type ClosePreview, type TellProgress, closeMonth } from "./close-month.ts";
import {
  type Preparation,
  type Signer,
  approveMonth,
  findPreparation,
  prepareMonth,
  withdrawPreparation,
} from "./prepare-month.ts";

export const monthField: Field<string> = {
  read: (typed) => (isMonth(typed) ? typed : undefined),
  wanted: `a month such as 2026-10, from ${earliestDay.slice(0, 7)} to ${latestDay.slice(0, 7)}`,
  longest: 7,
};

/** The reason for closing a month that is not proved. It is printed on the month's reports. */
export const closeReason = optional(text(longLine));

/** Dependencies of preparing and closing. */
export interface CloseDeps {
  /** A pool whose statements may take minutes. */
  db: Knex;
  timeZone: string;
  region: NetworkRegion;
  tell?: TellProgress | undefined;
  /** Called in the act's transaction: throws if the person has lost the right. Absent: permissions do not change. */
  assertAllowed?: (trx: Knex.Transaction) => Promise<void>;
}

/** The version of a preparation, for acts on it. */
export const versionOfPreparation = (standing: Pick<Preparation, "id"> | null): string => String(standing?.id ?? 0);

const signerOf = ({ actor }: ActCall<unknown>): Signer => ({
  name: actor.name,
  accountId: actor.accountId,
});

/** Computes a month for another person to close. An earlier preparation of it ends. */
export const preparing: Act<
  CloseDeps & { accounts: AccountMap },
  { month: string; reason: string | null },
  Preparation
> = {
  name: "month.prepared",
  permission: "month:prepare",
  fields: { month: monthField, reason: closeReason },
  async run({ db, tell, assertAllowed, ...settings }, call) {
    const { month, reason } = call.input;
    const { decidedOn } = call;
    const standing = await findPreparation(db, month);
    if (decidedOn !== null && decidedOn !== versionOfPreparation(standing)) throw outdated(month);
    const request = { ...settings, month, reason, by: signerOf(call) };
    return prepareMonth(db, request, {
      tell,
      ...(decidedOn === null ? {} : { replaces: standing?.id ?? null }),
      async record(trx, { id, verdict, asOf }) {
        await assertAllowed?.(trx);
        await recordOf(preparing, call)(trx, {
          subject: { kind: "month", id: month },
          after: { preparation: id, verdict, asOf, isForced: reason !== null },
        });
      },
    });
  },
};

export const withdrawing: Act<{ db: Knex }, { month: string }, Preparation> = {
  name: "month.withdrawn",
  permission: "month:prepare",
  fields: { month: monthField },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { month } = call.input;
      const preparation = await requirePreparation(trx, call);
      if (!(await withdrawPreparation(trx, preparation, signerOf(call)))) {
        throw outdated(`The preparation of ${month}`);
      }
      const { id, preparedBy } = preparation;
      await recordOf(withdrawing, call)(trx, {
        subject: { kind: "month", id: month },
        before: { preparation: id, preparedBy: preparedBy.name },
      });
      return preparation;
    }),
};

/** Closes exactly the prepared month. */
export const closing: Act<CloseDeps & { fourEyes: boolean }, { month: string }, Close> = {
  name: "month.closed",
  permission: "month:close",
  fields: { month: monthField },
  async run({ db, tell, assertAllowed, ...settings }, call) {
    const preparation = await requirePreparation(db, call);
    return approveMonth(
      db,
      { ...settings, preparation, by: signerOf(call) },
      {
        tell,
        check: async (trx) => assertAllowed?.(trx),
        async record(trx, close) {
          await assertAllowed?.(trx);
          await recordClosed(trx, call, { close, preparation: preparation.id });
        },
      },
    );
  },
};

/** Closes an unprepared month: one person does both. `shown`: exactly that is frozen, or nothing. */
export const closingAlone: Act<
  CloseDeps & { accounts: AccountMap; shown: ClosePreview | undefined },
  { month: string; reason: string | null },
  Close
> = {
  name: "month.closed",
  permission: "month:close",
  fields: { month: monthField, reason: closeReason },
  run: ({ db, shown, ...settings }, call) =>
    closeMonth(db, { ...settings, ...call.input, by: call.actor.name }, shown, {
      after: (trx, close) => recordClosed(trx, call, { close, preparation: null }),
    }),
};

const recordClosed = (
  trx: Knex.Transaction,
  call: ActCall<unknown>,
  { close, preparation }: { close: Close; preparation: number | null },
): Promise<void> => {
  const { month, sha256, verdict, preparedBy } = close;
  return recordOf(closing, call)(trx, {
    subject: { kind: "month", id: month },
    after: { preparation, sha256, verdict, preparedBy: preparedBy ?? null },
  });
};

/** The preparation that stands, where it is the one that was shown. Throws `ActRefused`. */
async function requirePreparation(
  db: Knex,
  { input: { month }, decidedOn }: ActCall<{ month: string }>,
): Promise<Preparation> {
  const preparation = await findPreparation(db, month);
  if (preparation === null) {
    throw new ActRefused("hindered", `No preparation of ${month} stands.`);
  }
  if (decidedOn !== null && decidedOn !== versionOfPreparation(preparation)) {
    throw outdated(`The preparation of ${month}`);
  }
  return preparation;
}
