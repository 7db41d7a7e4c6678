/** What a person recognizes a charge by. */
export interface Charge {
  /** The order's. */
  id: string;
  customerId: string | null;
  /** Minor units. */
  amount: bigint | null;
  currency: string | null;
  card: CardOfCharge;
  /** Whether money was taken, whatever was given back since. */
  tookMoney: boolean;
  at: Date | null;
}

/** Null: not known. */
export interface CardOfCharge {
  /** The stored payment method: a card that is typed in again gets another. */
  id: string | null;
  brand: string | null;
  lastFour: string | null;
}

/** Later, a customer who pays as much again has bought again, as a rule. */
export const doubleWithinMinutes = 10;
const withinMs = doubleWithinMinutes * 60_000;

/**
 * Whether two charges look like one that was made twice: of one customer, of one amount, to one card or an unknown one,
 * within ten minutes. It may be meant, as of two subscriptions that begin together. Pure, symmetric.
 */
export function isDouble(a: Charge, b: Charge): boolean {
  return (
    a.id !== b.id &&
    a.tookMoney &&
    b.tookMoney &&
    a.customerId !== null &&
    a.customerId === b.customerId &&
    a.amount !== null &&
    a.amount > 0n &&
    a.amount === b.amount &&
    a.currency !== null &&
    a.currency === b.currency &&
    mayBeOneCard(a.card, b.card) &&
    apartMs(a, b) <= withinMs
  );
}

/** The distance of two charges; infinite where a time is not known. */
export const apartMs = (a: Pick<Charge, "at">, b: Pick<Charge, "at">): number =>
  a.at === null || b.at === null ? Number.POSITIVE_INFINITY : Math.abs(a.at.getTime() - b.at.getTime());

/** Only what both show can tell them apart. */
function mayBeOneCard(a: CardOfCharge, b: CardOfCharge): boolean {
  if (a.id !== null && a.id === b.id) return true;
  const differ = (one: string | null, other: string | null): boolean => one !== null && other !== null && one !== other;
  if (differ(a.lastFour, b.lastFour) || differ(a.brand, b.brand)) return false;
  const areDigitsKnown = a.lastFour !== null && b.lastFour !== null;
  return areDigitsKnown || !differ(a.id, b.id);
}

/** The other charges that a charge looks like, the nearest first. Pure. */
export const doublesOf = <C extends Charge>(charge: Charge, others: readonly C[]): C[] =>
  others.filter((other) => isDouble(charge, other)).toSorted((a, b) => apartMs(charge, a) - apartMs(charge, b));
