import type { Knex } from "knex";
import { type Period, latestAsOf, parseDays, resolvePeriod } from "../base/period.ts";
import { type Preparation, findPreparation } from "./prepare-month.ts";
import { type CloseCheck, type Hindrance, sentenceOf } from "./hindrance.ts";
import { findHindrances, monthAfter } from "./refusal.ts";
import { BrokenSealError, type StoredClose, readCloses, readIntactCloses } from "./verify.ts";

/** The state of a month on its way to a close. */
export interface MonthState {
  month: string;
  period: Period;
  /** Null while it is open. */
  close: StoredClose | null;
  preparation: Preparation | null;
  /** Empty where it is closed. */
  checks: readonly MonthCheck[];
}

export interface MonthCheck {
  check: Exclude<CloseCheck, "verdict"> | "seals";
  /** Null: unknown so far. */
  isMet: boolean | null;
  /** The fault and the remedy; null where the check is met. */
  says: string | null;
}

/**
 * The state of a month, with all that `tallyhook close` would refuse it for. Whether each day's sums are the service's
 * is known once it is prepared. Some quick statements; `month` must be one (`isMonth`).
 */
export async function readMonthState(db: Knex, month: string, timeZone: string): Promise<MonthState> {
  const period = await resolvePeriod(db, parseDays({ from: month }, month), timeZone);
  const close = (await readCloses(db)).find(({ facts }) => facts.month === month) ?? null;
  if (close !== null) return { month, period, close, preparation: null, checks: [] };
  const preparation = await findPreparation(db, month);
  const found = await findHindrances(db, month, period, await latestAsOf(db));
  const checks = checksOf(found, {
    brokenSeal: await findBrokenSeal(db),
    isPrepared: preparation?.verdict === "PASS",
  });
  return { month, period, close, preparation, checks };
}

/** The next month to close: after the last closed one; before the first close the month before `today`. One statement. */
export async function nextMonth(db: Knex, today: string): Promise<string> {
  const last = (await readCloses(db)).at(-1);
  if (last !== undefined) return monthAfter(last.facts.month);
  const [year, month] = today.split("-").map(Number);
  return new Date(Date.UTC(year ?? 0, (month ?? 1) - 2, 1)).toISOString().slice(0, 7);
}

async function findBrokenSeal(db: Knex): Promise<string | null> {
  try {
    await readIntactCloses(db);
    return null;
  } catch (error) {
    if (error instanceof BrokenSealError) return error.message;
    throw error;
  }
}

/** In order: a failed check ends the rest. */
const decisive = ["over", "order", "zone", "apart"] as const;
const others = ["read", "changes", "findings", "minute"] as const;

function checksOf(
  hindrances: readonly Hindrance[],
  { brokenSeal, isPrepared }: { brokenSeal: string | null; isPrepared: boolean },
): MonthCheck[] {
  const says = new Map<MonthCheck["check"], string>();
  for (const hindrance of hindrances) {
    // A verdict without another explanation comes from the reads.
    const check = hindrance.check === "verdict" ? "read" : hindrance.check;
    const before = says.get(check);
    says.set(check, [...(before === undefined ? [] : [before]), sentenceOf(hindrance)].join(" "));
  }
  let isEnded = false;
  const checkOf = (check: MonthCheck["check"]): MonthCheck => {
    const wrong = says.get(check) ?? null;
    return { check, isMet: wrong !== null ? false : isEnded ? null : true, says: wrong };
  };
  const first = decisive.map((check) => {
    const found = checkOf(check);
    isEnded ||= found.isMet === false;
    return found;
  });
  const seals: MonthCheck = { check: "seals", isMet: brokenSeal === null, says: brokenSeal };
  const rest = others.map(checkOf);
  // Where lists have gaps, their changes to older sales are not checked.
  if (says.has("read")) {
    for (const each of rest) if (each.check === "changes") each.isMet = null;
  }
  const days: MonthCheck = { check: "days", isMet: isPrepared ? true : null, says: null };
  return [...first, seals, ...rest, days];
}
