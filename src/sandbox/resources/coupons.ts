import * as routes from "../../service/routes/coupons.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import { listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { mintCodes } from "../operations/coupon-codes.ts";
import { createCoupon, setArchived, updateCoupon } from "../operations/coupons.ts";
import { previewCoupon } from "../operations/preview-coupon.ts";
import { couponBody, couponCodeBody } from "../wire/coupon.ts";
import { find } from "./find.ts";

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
    url: "/v1/coupons",
    show: couponBody,
    anyOf: {
      ...(archived === "all" ? {} : { archived: [archived] }),
      ...(kind === undefined ? {} : { kind: [kind] }),
      ...(active === undefined ? {} : { active: [String(active)] }),
    },
  });
});

const validate = mounted(routes.validateCoupon, (space, { body }) =>
  plainAnswer(200, previewCoupon(space, body)),
);

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
  return `/v1/coupons/${couponId}/codes`;
}

/** `validate` stands before the paths with an id. */
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
