import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { runTallyhook } from "../e2e/program.ts";

test("programs that tests start, by their path or by name, run on the Node that the tests run on", async () => {
  const sayVersion = "--import=data:text/javascript,console.log(process.version)";
  const program = runTallyhook(["signature", "--help"], { NODE_OPTIONS: sayVersion });
  await program.exited;
  expect(program.output()).toContain(`${process.version}\n`);
  const byName = spawnSync("node", ["--version"], { encoding: "utf8" });
  expect(byName.stdout.trim()).toBe(process.version);
});
