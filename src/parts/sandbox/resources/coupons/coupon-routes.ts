import * as routes from "../../../../core/contract/resources/coupons.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import { ApiError, invalidValue } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import {
  type CouponCodeRecord,
  type CouponRecord,
  type CouponTerms,
  codeValue,
  couponBody,
  couponCodeBody,
  lockedField,
  termProblem,
} from "./coupon.ts";
import { previewCoupon } from "./redeem-coupon.ts";

const create = mounted(routes.createCoupon, (space, { body }) => {
  const { codes: batch, ...terms } = body;
  return answerWith(201, createCoupon(space, terms, batch), ({ coupon, codes }) => ({
    ...couponBody(coupon),
    codes: codes.map(couponCodeBody),
  }));
});

const list = mounted(routes.listCoupons, (space, { query }) => {
  const { kind, active, archived } = query;
  return listAnswer(space, space.coupons, query, {
    url: `/v1${routes.listCoupons.path}`,
    show: couponBody,
    test: (coupon) =>
      (archived === "all" || archived === String(coupon.archived_at !== null)) &&
      coupon.kind === (kind ?? coupon.kind) &&
      coupon.active === (active ?? coupon.active),
  });
});

const validate = mounted(routes.validateCoupon, (space, { body }) => plainAnswer(200, previewCoupon(space, body)));

const retrieve = mounted(routes.getCoupon, (space, { params }, state) =>
  answerWith(200, find(state, space, "coupons", params.id), couponBody),
);

const update = mounted(routes.updateCoupon, (space, { params, body }, state) => {
  const { kind: _kind, ...change } = body;
  const coupon = find(state, space, "coupons", params.id);
  return answerWith(200, updateCoupon(space, coupon, change), couponBody);
});

const remove = mounted(routes.deleteCoupon, (space, { params }, state) => {
  const coupon = find(state, space, "coupons", params.id);
  return answerWith(200, setArchived(space, coupon, true), couponBody);
});

const archive = mounted(routes.archiveCoupon, (space, { params, body }, state) => {
  const coupon = find(state, space, "coupons", params.id);
  return answerWith(200, setArchived(space, coupon, body.archived), couponBody);
});

const mint = mounted(routes.mintCouponCodes, (space, { params, body }, state) => {
  const coupon = find(state, space, "coupons", params.id);
  return answerWith(201, mintCodes(space, coupon, body), (minted) => ({
    data: minted.map(couponCodeBody),
    url: codesPath(coupon.id),
  }));
});

const listCodes = mounted(routes.listCouponCodes, (space, { params, query }, state) => {
  const { id } = find(state, space, "coupons", params.id);
  return listAnswer(space, space.couponCodes, query, {
    url: codesPath(id),
    show: couponCodeBody,
    anyOf: { coupon_id: [id] },
  });
});

function codesPath(couponId: string): string {
  return `/v1${routes.listCouponCodes.path.replace("{id}", couponId)}`;
}

/** `validate` comes before the paths with an id, which would match it. */
export const couponEndpoints: readonly Mounted[] = [
  create,
  list,
  validate,
  retrieve,
  update,
  remove,
  archive,
  mint,
  listCodes,
];

/** Terms as a request sends them: absent ones have defaults. */
export type CouponInput = { [Field in keyof CouponTerms]?: CouponTerms[Field] | undefined };

const defaults: Omit<CouponTerms, "name" | "kind" | "duration"> = {
  description: null,
  percentage: null,
  amount: null,
  max_discount_amount: null,
  currency: "usd",
  duration_in_cycles: null,
  first_time_customer_only: false,
  max_redemptions_per_code: null,
  max_redemptions: null,
  max_redemptions_per_customer: null,
  minimum_amount: null,
  starts_at: null,
  expires_at: null,
  product_scope: "all",
  plan_scope: "all",
  product_ids: [],
  plan_ids: [],
};

/**
 * Creates a coupon: a promo with one code, which is its name, or a generated coupon with the requested number of random
 * codes, by default none. All or nothing: refused when terms contradict each other or a promo's code is in use.
 */
export function createCoupon(
  space: Space,
  input: CouponInput & Pick<CouponTerms, "name" | "kind" | "duration">,
  batch?: { count: number; prefix?: string | undefined },
): { coupon: CouponRecord; codes: CouponCodeRecord[] } {
  const { name, kind, duration } = input;
  const terms: CouponTerms = { ...defaults, ...sentOnly(input), name, kind, duration };
  assertTerms(space, terms);
  assertFuture(space, input.expires_at);
  if (kind === "promo" && batch !== undefined) {
    throw invalidValue("codes", "is for generated coupons only");
  }
  if (kind === "promo") assertCodeUnused(space, codeValue(name), "name");
  const at = space.time.iso();
  const coupon: CouponRecord = {
    ...terms,
    id: space.ids.uuid(),
    active: true,
    archived_at: null,
    code_prefix: batch?.prefix ?? null,
    generated_code_count: batch?.count ?? 0,
    redemption_count: 0,
    created_at: at,
    updated_at: at,
  };
  space.coupons.insert(coupon);
  const codes =
    kind === "promo" ? [storeCode(space, coupon, codeValue(name))] : mintRandomCodes(space, coupon, batch?.count ?? 0);
  return { coupon, codes };
}

/**
 * Changes the fields that were sent; an empty request changes nothing. After the first redemption most terms are
 * locked: 422.
 */
function updateCoupon(
  space: Space,
  coupon: CouponRecord,
  input: CouponInput & { active?: boolean | undefined },
): CouponRecord {
  const change = sentOnly(input);
  if (Object.keys(change).length === 0) return coupon;
  const locked = lockedField(coupon, change, space.time.iso());
  if (locked !== null) {
    throw new ApiError("field_locked", `${locked} can no longer be changed.`, locked);
  }
  if (change.active === true && coupon.archived_at !== null) {
    throw new ApiError("invalid_state_transition", "The coupon is archived.", "active");
  }
  const changed = { ...coupon, ...change, updated_at: space.touch(coupon.updated_at) };
  assertTerms(space, changed);
  if (change.expires_at !== coupon.expires_at) assertFuture(space, change.expires_at);
  if ((changed.max_redemptions ?? Infinity) < coupon.redemption_count) {
    const message = `must be at least ${coupon.redemption_count}, the redemptions so far`;
    throw invalidValue("max_redemptions", message);
  }
  if (coupon.kind === "promo") renameCode(space, coupon, changed.name);
  space.coupons.replace(changed);
  return changed;
}

/** Archives a coupon, which deactivates it, or restores it, still inactive. Idempotent. */
function setArchived(space: Space, coupon: CouponRecord, archived: boolean): CouponRecord {
  if (archived === (coupon.archived_at !== null)) return coupon;
  const changed: CouponRecord = {
    ...coupon,
    archived_at: archived ? space.time.iso() : null,
    active: false,
    updated_at: space.touch(coupon.updated_at),
  };
  space.coupons.replace(changed);
  return changed;
}

/** Renames the code of a promo coupon with the coupon, unless it was redeemed. */
function renameCode(space: Space, coupon: CouponRecord, name: string): void {
  const [code] = space.couponCodes.inGroup("coupon_id", coupon.id);
  const value = codeValue(name);
  if (code === undefined || code.code === value) return;
  assertCodeUnused(space, value, "name");
  space.codes.delete(code.code);
  space.codes.set(value, code.id);
  space.couponCodes.replace({ ...code, code: value });
}

function assertTerms(space: Space, terms: CouponTerms): void {
  const problem = termProblem(terms);
  if (problem !== null) throw invalidValue(problem.field, problem.message);
  if (terms.product_ids.some((id) => space.products.get(id) === undefined)) {
    throw invalidValue("product_ids", "names an unknown product");
  }
  if (terms.plan_ids.some((id) => space.plans.get(id) === undefined)) {
    throw invalidValue("plan_ids", "names an unknown plan");
  }
}

function assertFuture(space: Space, expiresAt: string | null | undefined): void {
  if (expiresAt == null || expiresAt > space.time.iso()) return;
  throw invalidValue("expires_at", "must lie in the future");
}

type Sent<T> = { [Field in keyof T]?: Exclude<T[Field], undefined> };

function sentOnly<T extends object>(input: T): Sent<T> {
  const sent = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(sent) as Sent<T>;
}

function assertCodeUnused(space: Space, code: string, param: string): void {
  if (!space.codes.has(code)) return;
  throw new ApiError("resource_already_exists", `The code ${code} is in use.`, param);
}

function storeCode(space: Space, coupon: CouponRecord, code: string): CouponCodeRecord {
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

/** Mints random codes with the coupon's prefix, none of which is in use. */
function mintRandomCodes(space: Space, coupon: CouponRecord, count: number): CouponCodeRecord[] {
  return Array.from({ length: count }, () => storeCode(space, coupon, unusedCode(space, coupon)));
}

function unusedCode(space: Space, coupon: CouponRecord): string {
  const code = (coupon.code_prefix ?? "") + space.ids.couponCode();
  return space.codes.has(code) ? unusedCode(space, coupon) : code;
}

/**
 * Mints codes for a generated coupon: `count` random ones, or the literals in `codes`. All or nothing. Refused with 422
 * for a promo coupon, whose one code is fixed.
 */
function mintCodes(
  space: Space,
  coupon: CouponRecord,
  sent: { count?: number | undefined; codes?: readonly string[] | undefined },
): CouponCodeRecord[] {
  const { count, codes } = sent;
  if (coupon.kind === "promo") {
    throw new ApiError("field_locked", "A promo coupon has one code, which is its name.");
  }
  if ((count === undefined) === (codes === undefined)) {
    throw invalidValue("count", "send exactly one of count and codes");
  }
  if (codes !== undefined) assertLiterals(space, codes);
  const minted = codes?.map((code) => storeCode(space, coupon, code)) ?? mintRandomCodes(space, coupon, count ?? 0);
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
