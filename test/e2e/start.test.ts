import { existsSync } from "node:fs";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stopAbandonedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { makeDataDir } from "../support/data-directory.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { crash, isGroupAlive, processesWith, withoutChildren } from "../support/process-tree.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";

const endsWithinMs = 10_000;

describe("tallyhook start", () => {
  let dataDir: string;
  let environment: Record<string, string>;
  let readyUrl: string;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const [port, adminPort, sandboxPort] = [await freePort(), await freePort(), await freePort()];
    readyUrl = `http://127.0.0.1:${port}/readyz`;
    environment = {
      TALLYHOOK_DATA_DIR: dataDir,
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      SANDBOX_PORT: String(sandboxPort),
      LOG_LEVEL: "warn",
      // Meant for another server, as in the shell of somebody who works with a managed one.
      PGSSLMODE: "require",
    };
  });

  afterAll(async () => {
    await killPrograms();
    await stopAbandonedPostgres(dataDir);
    await rm(dataDir, { recursive: true, force: true });
  });

  const started = async (): Promise<Program> => {
    const program = runTallyhook(["start"], environment);
    await program.printed("Stop with Ctrl-C");
    const answer = await fetch(readyUrl);
    expect([answer.status, await answer.json()]).toEqual([200, { status: "ok", reasons: [] }]);
    return program;
  };

  /** Ctrl-C in a terminal, or its end: every process of the foreground group gets it. */
  const interrupted = async (
    program: Program,
    signal: NodeJS.Signals = "SIGINT",
  ): Promise<void> => {
    const beganMs = performance.now();
    program.signalGroup(signal);
    expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
    expect(performance.now() - beganMs).toBeLessThan(endsWithinMs);
    expect(isGroupAlive(program.pid)).toBe(false);
  };

  /** The servers of this data directory: they are in no group of ours. */
  const leftRunning = (): number[] => withoutChildren(processesWith(` -D ${dataDir}`));

  test("is ready on the defaults, and Ctrl-C ends all of it", async () => {
    const program = await started();
    expect(leftRunning()).not.toEqual([]);
    await interrupted(program);
    expect(leftRunning()).toEqual([]);
    await expect(fetch(readyUrl)).rejects.toThrow();
  });

  test("after kill -9 the next start attaches to the database that went on; a closed terminal ends all of it", async () => {
    const first = await started();
    await first.kill();
    const survivors = leftRunning();
    expect(survivors).toHaveLength(1);
    const second = await started();
    expect(leftRunning()).toEqual(survivors);
    await interrupted(second, "SIGHUP");
    expect(leftRunning()).toEqual([]);
  });

  test("after kill -9 of the database as well the next start recovers", async () => {
    const first = await started();
    await first.kill();
    const [server] = leftRunning();
    if (server === undefined) throw new Error("no database runs");
    crash(server);
    await eventually("the database is gone", () => leftRunning().length === 0);
    await interrupted(await started());
    expect(leftRunning()).toEqual([]);
  });

  test("the sandbox outlives a start as the mirror does, and --reset throws both away", async () => {
    const sandboxUrl = `http://127.0.0.1:${environment["SANDBOX_PORT"]}/_sandbox`;
    const first = await started();
    expect(first.output()).toContain('"past":true');
    const traffic = await fetch(`${sandboxUrl}/traffic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ orders: 10, subscriptions: 2, past: true }),
    });
    const { to } = (await traffic.json()) as { to: string };
    expect(Math.abs(Date.parse(to) - Date.now())).toBeLessThan(60_000);
    await interrupted(first);

    const second = await started();
    expect(second.output()).not.toContain('"past":true');
    const report = runTallyhook(["reconcile", "--json"], environment);
    // The grace is short for the sandbox; a wait of ten minutes would be the test's end.
    expect(await report.exited, report.output()).toEqual({ code: 0, signal: null });
    await interrupted(second);

    const unasked = runTallyhook(["start", "--reset"], environment);
    expect(await unasked.exited).toEqual({ code: 64, signal: null });
    const third = runTallyhook(["start", "--reset", "--yes"], environment);
    await third.printed('"past":true');
    await interrupted(third);
  });

  test("--reset is refused beside a sandbox that runs on another database, and removes nothing", async () => {
    const stateFile = join(dataDir, "sandbox", "state.json");
    // The tests before have left one.
    if (!existsSync(stateFile)) await interrupted(await started());
    const seedKept = async () =>
      (JSON.parse(await readFile(stateFile, "utf8")) as { seed: string }).seed;
    const seed = await seedKept();
    const elsewhere = runTallyhook(["sandbox", "--port", "0", "--state", stateFile], environment);
    await elsewhere.printed("The sandbox answers at");
    const reset = runTallyhook(["start", "--reset", "--yes"], environment);
    expect(await reset.exited, reset.output()).toEqual({ code: 2, signal: null });
    expect(reset.output()).toMatch(/state\.json is in use by another sandbox/);
    expect(await seedKept()).toBe(seed);
    await stat(join(dataDir, "postgres", "cluster"));
    await elsewhere.stop();
  });

  test("Ctrl-C while it starts leaves nothing behind", async () => {
    const program = runTallyhook(["start"], environment);
    await eventually("the database starts", () => leftRunning().length > 0, {
      withinMs: 30_000,
      everyMs: 5,
    });
    program.signalGroup("SIGINT");
    const { code } = await program.exited;
    expect([0, 130]).toContain(code);
    expect(leftRunning()).toEqual([]);
  });
});
