import { expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { createRateLimitedWarnings } from "../../src/platform/rate-limited-warnings.ts";

test("the same warning is logged at once and then seldom, with the number of those left out", () => {
  const lines: { msg: string; leftOut: number; n: number }[] = [];
  const log = createLog({
    level: "info",
    name: "test",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  let nowMs = 1_000_000;
  const warn = createRateLimitedWarnings({ log, clock: { now: () => new Date(nowMs) } });
  for (let n = 0; n < 100; n++) {
    warn("refused", { n });
    warn("stale", { n });
    nowMs += 99;
  }
  expect(lines.map(({ msg, n }) => `${msg} ${n}`)).toEqual(["refused 0", "stale 0"]);
  nowMs += 200;
  warn("refused", { n: 100 });
  expect(lines.at(-1)).toMatchObject({ msg: "refused", n: 100, leftOut: 99 });
});

test("a clock that is set back does not silence it", () => {
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    name: "test",
    destination: { write: (line) => void lines.push(line) },
  });
  let nowMs = 1_000_000_000;
  const warn = createRateLimitedWarnings({ log, clock: { now: () => new Date(nowMs) } });
  warn("refused", {});
  nowMs -= 3_600_000;
  warn("refused", {});
  expect(lines).toHaveLength(2);
});
