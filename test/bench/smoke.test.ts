import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";
import { redisInstalled } from "../support/redis.ts";

interface Report {
  results: Record<string, { rows: Record<string, string | number>[]; targets: { measured: string }[] }>;
}

/** One with a generator, a receiver and a worker; `npm run torture` has a full inbox and all servers, too. */
const names = inject("isTorture") ? ["accept", "drain", "handlers", "memory"] : ["memory"];

/** For a moment: what is measured in that time means nothing, that it is measured does. */
test("measures with every kind of load and prints one JSON object", { timeout: 1_800_000 }, async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", "bench/run.ts", ...names, "--seconds", "0.15", "--rounds", "1", "--minutes", "0.02", "--json"],
    { cwd: projectRoot, maxBuffer: 10_000_000 },
  );

  const { results } = JSON.parse(stdout) as Report;
  const backends = redisInstalled ? 2 : 1;
  expect(Object.fromEntries(Object.entries(results).map(([name, { rows }]) => [name, rows.length]))).toEqual({
    ...(inject("isTorture") ? { accept: 5 + 2 * backends, drain: backends, handlers: 10 } : {}),
    memory: 2,
  });
  const measured = Object.values(results).flatMap(({ targets }) => targets.map((target) => target.measured));
  expect(measured).toHaveLength(inject("isTorture") ? 3 * backends + 6 + 2 : 2);
  for (const value of measured) expect(value).toMatch(/^\d/);
});
