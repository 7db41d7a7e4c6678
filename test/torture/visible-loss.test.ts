import { afterAll, expect, test } from "vitest";
import { runCrashes } from "../e2e/crash-run.ts";
import { killPrograms } from "../e2e/program.ts";

afterAll(killPrograms);

/**
 * The proof that the others prove something: with `synchronous_commit = off` a commit is answered before its log
 * leaves the server's memory, and the same harness has to see what a crash then takes with it.
 */
test("a database that promises too much is found out", async () => {
  const { audit, ...numbers } = await runCrashes({
    seed: process.env["TORTURE_SEED"] ?? "torture",
    kills: { receiver: 0, worker: 0, postgres: 5, backend: 0 },
    settings: { synchronous_commit: "off" },
  });
  console.log(
    JSON.stringify({ synchronousCommit: "off", ...numbers, missing: audit.missing.length }),
  );
  expect(audit.missing.length).toBeGreaterThan(0);
});
