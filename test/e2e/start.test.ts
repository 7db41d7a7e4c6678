import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
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
      DASHBOARD_PORT: "0",
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
  const interrupted = async (program: Program, signal: NodeJS.Signals = "SIGINT"): Promise<void> => {
    const beganMs = performance.now();
    program.signalGroup(signal);
    expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
    expect(performance.now() - beganMs).toBeLessThan(endsWithinMs);
    expect(isGroupAlive(program.pid)).toBe(false);
  };

  /** The servers of this data directory: they are in no group of ours. */
  const leftRunning = (): number[] => withoutChildren(processesWith(` -D ${dataDir}`));

  const sandboxUrl = (): string => `http://127.0.0.1:${environment["SANDBOX_PORT"]}/_sandbox`;
  const stateFile = (): string => join(dataDir, "sandbox", "state.json");
  const seedKept = async (): Promise<string> =>
    (JSON.parse(await readFile(stateFile(), "utf8")) as { seed: string }).seed;

  // Each start takes what the one before has left.
  test("is ready on the defaults, makes a past for the sandbox, and Ctrl-C ends all of it", async () => {
    const program = await started();
    expect(program.output()).toContain('"past":true');
    expect(leftRunning()).not.toEqual([]);
    const traffic = await fetch(`${sandboxUrl()}/traffic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ orders: 10, subscriptions: 2, past: true }),
    });
    const { to } = (await traffic.json()) as { to: string };
    expect(Math.abs(Date.parse(to) - Date.now())).toBeLessThan(60_000);
    await interrupted(program);
    expect(leftRunning()).toEqual([]);
    await expect(fetch(readyUrl)).rejects.toThrow();
  });

  test("on a terminal it shows each event and change; a second start names the first; Ctrl-C ends it with its message", async () => {
    const command = `stty cols 80; exec "${process.execPath}" "${inject("program")}" start`;
    const terminal = spawn("script", ["-qec", command, "/dev/null"], {
      cwd: dataDir,
      env: { PATH: process.env["PATH"], ...environment, LOG_LEVEL: "info", NO_COLOR: "1" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let output = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    const closed = once(terminal, "close");
    await eventually("it runs", () => output.includes("Stop with Ctrl-C"), { withinMs: 120_000 });
    await fetch(`${sandboxUrl()}/traffic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ orders: 3, subscriptions: 0, days: 0.01 }),
    });
    await eventually("a change is shown", () => /\dZ {2}change {2}order \S+ +order\.paid/.test(output));
    expect(output).toMatch(/\dZ {2}event {3}order \S+ +#\d+ applied/);
    expect(output).not.toContain("\u001b");
    const second = runTallyhook(["start"], environment);
    expect(await second.exited, second.output()).toEqual({ code: 2, signal: null });
    expect(second.output()).toMatch(/already running here: pid \d+, dashboard at http:\/\/127\.0\.0\.1:\d+\./);
    terminal.stdin.write("\u0003");
    await closed;
    expect(output).toContain("Stopped. Nothing that was acknowledged is lost.");
    expect(leftRunning()).toEqual([]);
  });

  test("the sandbox outlives a start as the mirror does; after kill -9 the next start attaches to the database that went on", async () => {
    const first = await started();
    expect(first.output()).not.toContain('"past":true');
    const report = runTallyhook(["reconcile", "--json"], environment);
    // The grace is short for the sandbox; a wait of ten minutes would be the test's end.
    expect(await report.exited, report.output()).toEqual({ code: 0, signal: null });
    await first.kill();
    const survivors = leftRunning();
    expect(survivors).toHaveLength(1);
    const second = await started();
    expect(leftRunning()).toEqual(survivors);
    await second.kill();
    expect(leftRunning()).toEqual(survivors);
  });

  test("after kill -9 of the database as well the next start recovers; a closed terminal ends all of it", async () => {
    const [server] = leftRunning();
    if (server === undefined) throw new Error("no database runs");
    crash(server);
    await eventually("the database is gone", () => leftRunning().length === 0);
    await interrupted(await started(), "SIGHUP");
    expect(leftRunning()).toEqual([]);
  });

  test("a service manager's SIGTERM, which only the process itself gets, ends all of it with 0", async () => {
    const program = await started();
    process.kill(program.pid, "SIGTERM");
    expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
    expect(leftRunning()).toEqual([]);
    await expect(fetch(readyUrl)).rejects.toThrow();
  });

  // npm waits for its program at a SIGINT and sends it nothing: a terminal sends Ctrl-C to both.
  test.each([
    ["SIGTERM to npm alone, as a service manager may send it", "SIGTERM", 1],
    ["Ctrl-C, which a terminal sends to npm and to the program", "SIGINT", -1],
  ] as const)("npm start ends by %s, and leaves no process and no server behind", async (_, signal, group) => {
    const npm = spawn("npm", ["start"], {
      cwd: inject("image"),
      env: { PATH: process.env["PATH"], HOME: dataDir, ...environment },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    // The program holds the pipes until it ends, also where npm ends before it.
    const closed = once(npm, "close");
    try {
      await eventually("it runs", () => output.includes("Stop with Ctrl-C"), {
        withinMs: 120_000,
      });
      process.kill(group * (npm.pid ?? 0), signal);
      await closed;
      expect(output).toContain("Stopped. Nothing that was acknowledged is lost.");
      expect(leftRunning()).toEqual([]);
      await expect(fetch(readyUrl)).rejects.toThrow();
    } finally {
      if (isGroupAlive(npm.pid ?? 0)) process.kill(-(npm.pid ?? 0), "SIGKILL");
    }
  });

  test("--reset is refused beside a sandbox that runs on another database, and removes nothing", async () => {
    const seed = await seedKept();
    const sandbox = ["sandbox", "--port", "0", "--state", stateFile()];
    const elsewhere = runTallyhook(sandbox, environment);
    await elsewhere.printed("The sandbox answers at");
    const reset = runTallyhook(["start", "--reset", "--yes"], environment);
    expect(await reset.exited, reset.output()).toEqual({ code: 2, signal: null });
    expect(reset.output()).toMatch(/state\.json is in use by another sandbox/);
    expect(await seedKept()).toBe(seed);
    await stat(join(dataDir, "postgres", "cluster"));
    await elsewhere.stop();
  });

  test("--reset asks before it throws both away, and Ctrl-C while it starts leaves nothing behind", async () => {
    const seed = await seedKept();
    const unasked = runTallyhook(["start", "--reset"], environment);
    expect(await unasked.exited).toEqual({ code: 64, signal: null });
    const program = runTallyhook(["start", "--reset", "--yes"], environment);
    await eventually("the database starts", () => leftRunning().length > 0, {
      withinMs: 30_000,
      everyMs: 5,
    });
    program.signalGroup("SIGINT");
    const { code } = await program.exited;
    expect([0, 130]).toContain(code);
    expect(leftRunning()).toEqual([]);
    expect(await seedKept().catch(() => null)).not.toBe(seed);
  });
});
