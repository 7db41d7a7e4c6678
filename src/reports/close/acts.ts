import type { Knex } from "knex";
import { type Act, type ActCall, ActRefused, outdated, recordOf } from "../../people/act.ts";
import { type Field, optional, text } from "../../people/fields.ts";
import { longLine } from "../../platform/free-text.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import type { AccountMap } from "../base/account-map.ts";
import { isMonth } from "../base/period.ts";
import type { NetworkRegion } from "../base/read-report.ts";
import { type Close, type ClosePreview, type TellProgress, closeMonth } from "./close-month.ts";
import {
  type Preparation,
  approveMonth,
  findPreparation,
  prepareMonth,
  whyNotApprove,
  withdrawPreparation,
} from "./prepare-month.ts";

interface MonthDeps {
  db: Knex;
  timeZone: string;
  region: NetworkRegion;
  tell?: TellProgress;
  /** In the transaction that writes, which may begin minutes after the call. What it throws refuses the act. */
  check?: (trx: Knex.Transaction) => Promise<void>;
}

interface WithAccounts extends MonthDeps {
  accounts: AccountMap;
}

/** What a decision about the preparation of a month depends on; `0` where none stands. Pure. */
export const preparationVersion = (standing: Pick<Preparation, "id"> | null): string => String(standing?.id ?? 0);

const monthField: Field<string> = {
  read: (typed) => (isMonth(typed) ? typed : undefined),
  wanted: "a month such as 2026-10",
};
const reason = optional(text(longLine));
const noCheck = async (): Promise<void> => {};

/** A month is computed and kept for another person to close. It takes the place of the preparation that was shown. */
export const preparing: Act<WithAccounts, { month: string; reason: string | null }, Preparation> = {
  name: "month.prepared",
  permission: "month:prepare",
  fields: { month: monthField, reason },
  async run({ db, tell, check = noCheck, ...settings }, call) {
    const { actor, decidedOn, input } = call;
    const standing = await findPreparation(db, input.month);
    if (decidedOn !== null && decidedOn !== preparationVersion(standing)) {
      throw outdated(`The preparation of ${input.month}`);
    }
    return prepareMonth(
      db,
      { ...settings, ...input, by: actor },
      {
        ...(tell === undefined ? {} : { tell }),
        ...(decidedOn === null ? {} : { replaces: standing?.id ?? null }),
        async record(trx, { id, verdict, asOf }) {
          await check(trx);
          await recordOf(preparing, call)(trx, {
            subject: { kind: "month", id: input.month },
            after: { preparation: id, verdict, asOf, isForced: input.reason !== null },
          });
        },
      },
    );
  },
};

/** A preparation is taken back. */
export const withdrawing: Act<{ db: Knex }, { month: string }, null> = {
  name: "month.withdrawn",
  permission: "month:prepare",
  fields: { month: monthField },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { month } = call.input;
      const preparation = await requirePreparation(trx, month, call.decidedOn);
      if (!(await withdrawPreparation(trx, preparation, call.actor))) {
        throw outdated(`The preparation of ${month}`);
      }
      await recordOf(withdrawing, call)(trx, {
        subject: { kind: "month", id: month },
        before: { preparation: preparation.id, preparedBy: preparation.preparedBy.name },
      });
      return null;
    }),
};

interface Approving extends MonthDeps {
  /** Whether the one who prepared the month may close it as well. */
  fourEyes: boolean;
}

/** What was prepared is closed. */
export const closing: Act<Approving, { month: string }, Close> = {
  name: "month.closed",
  permission: "month:close",
  fields: { month: monthField },
  async run(deps, call) {
    const { db, tell, check = noCheck } = deps;
    const preparation = await requireApprovable(deps, call);
    return approveMonth(
      db,
      { ...deps, preparation, by: call.actor },
      {
        ...(tell === undefined ? {} : { tell }),
        check,
        async record(trx, close) {
          await check(trx);
          await recordClose(trx, call, close, preparation.id);
        },
      },
    );
  },
};

interface ClosingAlone extends WithAccounts {
  /** Exactly this is frozen, or nothing; null: whatever is found. */
  shown: ClosePreview | null;
}

/** One person closes a month as it is found, whatever was prepared. */
export const closingAlone: Act<ClosingAlone, { month: string; reason: string | null }, Close> = {
  ...closing,
  fields: { month: monthField, reason },
  run: ({ db, shown, ...settings }, call) =>
    closeMonth(db, { ...settings, ...call.input, by: call.actor.name }, shown ?? undefined, {
      after: (trx, close) => recordClose(trx, call, close, null),
    }),
};

const recordClose = (
  trx: Knex.Transaction,
  call: Pick<ActCall<unknown>, "actor">,
  { month, sha256, verdict, preparedBy }: Close,
  preparation: number | null,
): Promise<void> =>
  recordOf(closing, call)(trx, {
    subject: { kind: "month", id: month },
    after: { preparation, sha256, verdict, preparedBy: preparedBy ?? null },
  });

/** What is prepared, where this person may close it. Throws `ActRefused`. */
export async function requireApprovable(
  { db, timeZone, region, fourEyes }: Approving,
  { actor, input, decidedOn }: ActCall<{ month: string }>,
): Promise<Preparation> {
  const preparation = await requirePreparation(db, input.month, decidedOn);
  const refusal = whyNotApprove({ preparation, by: actor, timeZone, region, fourEyes });
  if (refusal !== null) throw new ActRefused("forbidden", refusal);
  return preparation;
}

/** The preparation that stands, where it is the one that was shown. */
async function requirePreparation(db: Knex, month: string, decidedOn: string | null): Promise<Preparation> {
  const standing = await findPreparation(db, month);
  if (decidedOn !== null && decidedOn !== preparationVersion(standing)) {
    throw outdated(`The preparation of ${month}`);
  }
  if (standing !== null) return standing;
  throw new ActRefused("hindered", `No preparation of ${month} stands.`);
}
