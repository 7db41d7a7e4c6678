import { expect, test } from "vitest";
import { runNightly } from "./run-nightly.ts";

test("every change is found on the night that the plan promises, over two turns of the rotation", async () => {
  const { late, missed } = await runNightly({ nights: 9, rotationNights: 4 });
  expect(missed, "never found").toEqual([]);
  expect(late).toEqual([]);
});
