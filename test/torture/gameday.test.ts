import { expect, test } from "vitest";
import { faults } from "../../src/parts/sandbox/cli/gameday/faults.ts";
import { runTallyhook } from "../e2e/program.ts";

test("each of the ten faults of a game day fires its alert, and its repair ends it", async () => {
  const program = runTallyhook(["gameday", "--check"], {});
  const { code } = await program.exited;
  const output = program.output();
  expect(code, output).toBe(0);
  for (const { name, rule } of faults) {
    expect(output).toContain(`${name.padEnd(18)} ${rule} fired and ended`);
  }
}, 900_000);
