import type { DifferentObject } from "../mirror/compare-rows.ts";
import type { Difference } from "./findings.ts";

export interface AmountAtRisk {
  /** Minor units. */
  amountMinor: bigint | null;
  currency: string | null;
}

/**
 * What a difference may cost: by how much the money differs, else the whole amount where the object is missing or its
 * status differs, else nothing. Null for what has no amount. Pure.
 */
export function amountAtRisk(
  { stored, groups }: Pick<DifferentObject, "stored" | "groups">,
  differences: readonly Difference[],
): AmountAtRisk {
  const columns = Object.assign({}, ...groups.map(({ state }) => state.columns)) as Record<
    string,
    unknown
  >;
  const value = (field: string): unknown => columns[field] ?? stored?.[field];
  const amount = asAmount(value("total")) ?? asAmount(value("amount"));
  const currency = value("currency");
  if (amount === null) return { amountMinor: null, currency: null };
  const differs = (field: string) => differences.find((difference) => difference.field === field);
  const byMoney = differs("total") ?? differs("amount");
  const [there, here] = [asAmount(byMoney?.service), asAmount(byMoney?.mirror)];
  const isWhole = stored === null || differs("status") !== undefined;
  return {
    amountMinor:
      there !== null && here !== null ? distance(there, here) : isWhole ? distance(amount, 0n) : 0n,
    currency: typeof currency === "string" ? currency : null,
  };
}

const asAmount = (value: unknown): bigint | null =>
  typeof value === "number" && Number.isInteger(value) ? BigInt(value) : null;

/** The column's largest value: a row that was spoiled to the smallest one would not fit, and stop the run. */
const most = 2n ** 63n - 1n;

function distance(a: bigint, b: bigint): bigint {
  const difference = a < b ? b - a : a - b;
  return difference > most ? most : difference;
}
