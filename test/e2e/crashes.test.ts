import { afterAll, expect, test } from "vitest";
import { faultless } from "./audit.ts";
import { runCrashes } from "./crash-run.ts";
import { killPrograms } from "./program.ts";

afterAll(killPrograms);

/** `npm run torture` does the same a hundred times, with other seeds and both queues. */
test("what was acknowledged is stored once and applied once, whatever is killed under load", async () => {
  const report = await runCrashes({
    seed: "npm test",
    kills: { receiver: 3, worker: 3, postgres: 3, backend: 1 },
    eventsPerSecond: 150,
  });
  expect(report.audit).toEqual(faultless);
  expect(report.killed).toEqual({ receiver: 3, worker: 3, postgres: 3, backend: 1 });
  // Else nothing was under way when the processes were killed.
  expect(report.brokenConnections).toBeGreaterThan(0);
  expect(report.slowestAnswerMs).toBeLessThan(10_000);
}, 180_000);
