import { expect, test } from "vitest";
import { walkNights } from "../reconcile/walk-nights.ts";

test("every change is found on the night that the plan promises, over 40 nights of a rotation of 30", async () => {
  const { late, missed } = await walkNights({ nights: 40, rotationNights: 30 });
  expect(missed, "never found").toEqual([]);
  expect(late).toEqual([]);
}, 900_000);
