import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "./eventually.ts";
import { processesWith, signalIfThere } from "./process-tree.ts";
import { projectRoot } from "./project-root.ts";

/** Far longer than a run's start takes on a busy machine: a longer wait means that it hangs. */
const withinMs = 120_000;

test.runIf(process.platform === "linux").each([
  ["Ctrl-C", "SIGINT"],
  ["kill -9 of all of it", "SIGKILL"],
] as const)(
  "after %s a run leaves no server and no directory behind",
  async (_, signal) => {
    const place = await mkdtemp(join(tmpdir(), "tallyhook-nested-"));
    const vitest = join(projectRoot, "node_modules", "vitest", "vitest.mjs");
    const run = spawn(process.execPath, [vitest, "run", "test/platform/postgres/pool.test.ts"], {
      cwd: projectRoot,
      env: { ...process.env, TMPDIR: place },
      // A group of its own, as a terminal gives to each command.
      detached: true,
      stdio: "ignore",
    });
    onTestFinished(async () => {
      signalIfThere(-(run.pid ?? 0), "SIGKILL");
      await rm(place, { recursive: true, force: true, maxRetries: 10 });
    });
    const isServerReady = () =>
      readdirSync(place).some((name) =>
        readdirSync(join(place, name)).some((made) => existsSync(join(place, name, made, "postgres", "port"))),
      );
    await eventually("the run's server is ready", isServerReady, { withinMs });
    expect(processesWith(place).length).toBeGreaterThan(0);
    process.kill(-(run.pid ?? 0), signal);
    const isAllGone = async () => {
      // tsx keeps one directory of compiled files for all its processes.
      const left = (await readdir(place)).filter((name) => !name.startsWith("tsx-"));
      expect(left).toEqual([]);
      return processesWith(place).length === 0;
    };
    await eventually("nothing is left", isAllGone, { withinMs });
  },
  3 * withinMs,
);
