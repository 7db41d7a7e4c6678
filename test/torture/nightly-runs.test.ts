import { expect, test } from "vitest";
import { runNightly } from "../reconcile/run-nightly.ts";

test("every change is found on the night that the plan promises, over 40 nights of a rotation of 30", async () => {
  const { late, missed } = await runNightly({ nights: 40, rotationNights: 30 });
  expect(missed, "never found").toEqual([]);
  expect(late).toEqual([]);
}, 900_000);
