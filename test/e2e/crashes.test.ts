import { afterAll, expect, test } from "vitest";
import { faultless } from "./audit.ts";
import { runCrashes } from "./crash-run.ts";
import { killPrograms } from "./program.ts";

afterAll(killPrograms);

/** What each adds is seen at its first kill; `npm run torture` does each a hundred times, with other seeds and both queues. */
const kills = { receiver: 1, worker: 1, postgres: 2, backend: 1 };

test("what was acknowledged is stored once and applied once, whatever is killed under load", async () => {
  const report = await runCrashes({
    seed: "npm test",
    kills,
    eventsPerSecond: 150,
  });
  expect(report.audit).toEqual(faultless);
  expect(report.killed).toEqual(kills);
  // Else nothing was under way when the processes were killed.
  expect(report.brokenConnections).toBeGreaterThan(0);
  expect(report.slowestAnswerMs).toBeLessThan(10_000);
}, 180_000);
