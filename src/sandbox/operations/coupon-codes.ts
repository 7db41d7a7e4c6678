import type { CouponCodeRecord, CouponRecord } from "../coupon-records.ts";
import { invalidValue, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";

export function assertCodeUnused(space: Space, code: string, param: string): void {
  if (!space.codes.has(code)) return;
  throw new Refusal("resource_already_exists", `The code ${code} is in use.`, param);
}

export function storeCode(space: Space, coupon: CouponRecord, code: string): CouponCodeRecord {
  const record: CouponCodeRecord = {
    id: space.ids.uuid(),
    coupon_id: coupon.id,
    code,
    redemption_count: 0,
    created_at: space.time.iso(),
  };
  space.couponCodes.insert(record);
  space.codes.set(code, record.id);
  return record;
}

/** Random codes with the coupon's prefix, none of which is in use. */
export function mintRandomCodes(
  space: Space,
  coupon: CouponRecord,
  count: number,
): CouponCodeRecord[] {
  return Array.from({ length: count }, () => storeCode(space, coupon, unusedCode(space, coupon)));
}

function unusedCode(space: Space, coupon: CouponRecord): string {
  const code = (coupon.code_prefix ?? "") + space.ids.couponCode();
  return space.codes.has(code) ? unusedCode(space, coupon) : code;
}

/**
 * Mints codes for a generated coupon: `count` random ones, or the literals in `codes`. All or nothing. A promo coupon has one code
 * for good: 422.
 */
export function mintCodes(
  space: Space,
  coupon: CouponRecord,
  sent: { count?: number | undefined; codes?: readonly string[] | undefined },
): CouponCodeRecord[] {
  const { count, codes } = sent;
  if (coupon.kind === "promo") {
    throw new Refusal("field_locked", "A promo coupon has one code, which is its name.");
  }
  if ((count === undefined) === (codes === undefined)) {
    throw invalidValue("count", "send exactly one of count and codes");
  }
  if (codes !== undefined) assertLiterals(space, codes);
  const minted =
    codes?.map((code) => storeCode(space, coupon, code)) ??
    mintRandomCodes(space, coupon, count ?? 0);
  space.coupons.replace({
    ...coupon,
    generated_code_count: coupon.generated_code_count + minted.length,
    updated_at: space.touch(coupon.updated_at),
  });
  return minted;
}

function assertLiterals(space: Space, codes: readonly string[]): void {
  const repeated = codes.find((code, i) => codes.indexOf(code) < i);
  if (repeated !== undefined) throw invalidValue("codes", `${repeated} is there twice`);
  for (const [i, code] of codes.entries()) assertCodeUnused(space, code, `codes.${i}`);
}
