import { readFile } from "node:fs/promises";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { registerReconcile } from "../../../src/parts/reconcile/cli/reconcile.ts";
import { createReconcileProgress } from "../../../src/parts/reconcile/cli/walk-progress.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { withRunLease } from "../../../src/parts/reconcile/runs/run-lease.ts";
import type { WalkProgress } from "../../../src/parts/reconcile/walk/walk-all.ts";
import { refusal, startHostileService } from "../../reconcile/hostile-service.ts";
import { startRun } from "../../reconcile/killed-runs.ts";
import { createReconcileStand } from "../../reconcile/reconcile-stand.ts";
import { runCommand } from "./command-line.ts";

test("a run that waits says so at once, ends cleanly on Ctrl-C, and is gone on with", async () => {
  const service = await startHostileService();
  const stand = await createReconcileStand(service.url);
  try {
    await stand.run();
    const now = new Date().toISOString();
    Object.assign(service.objects["orders"]?.[0] ?? {}, { status: "refunded", updated_at: now });

    const waiting = startRun(service, stand.database.url, { graceSeconds: 600 });
    let isEnding = false;
    waiting.onError((err) => {
      // Once: a second Ctrl-C ends it at once, and it still writes while it ends.
      if (isEnding || !err.includes("waits until")) return;
      isEnding = true;
      waiting.end("SIGINT");
    });
    const stopped = await waiting.exited;
    expect(stopped).toMatchObject({ code: 4, out: "" });
    expect(stopped.err).toMatch(/waits until \d\d:\d\d:\d\d \(UTC\) for 1 object that differs/);
    expect(stopped.err).toContain("RECONCILE_GRACE_SECONDS");
    expect(stopped.err).toContain("Stopped by SIGINT");

    const { code, out } = await startRun(service, stand.database.url).exited;
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ run: 2, complete: true, healed: 1, left: 0 });
  } finally {
    await stand.close();
    await service.close();
  }
});

const atStart: WalkProgress = {
  slices: 1,
  slicesDone: 1,
  pages: 1,
  rows: 9,
  expectedRows: 9,
  doubtful: 2,
  waitMs: 0,
  waitReason: null,
};

test.each([
  ["a terminal", true],
  ["no terminal", false],
])("on %s a wait is told once, and again when it becomes longer", (_, isTTY) => {
  const out = Object.assign(new PassThrough(), { isTTY, columns: 200 });
  const clock = { now: () => new Date("2025-01-01T10:00:00Z") };
  const progress = createReconcileProgress(out as unknown as NodeJS.WriteStream, {
    clock,
    timeZone: "Europe/Madrid",
    isQuiet: false,
  });
  for (const waitMs of [0, 60_000, 59_000, 0, 120_000]) progress.update({ ...atStart, waitMs });
  progress.stop();
  const told = [...String(out.read()).matchAll(/waits until (\S+ \S+) for 2 objects/g)];
  expect(told.map(([, until]) => until)).toEqual(["11:01:00 (Europe/Madrid)", "11:02:00 (Europe/Madrid)"]);
});

test("a wait for the service is told with its reason", () => {
  const out = new PassThrough();
  const progress = createReconcileProgress(out as unknown as NodeJS.WriteStream, {
    clock: { now: () => new Date("2025-01-01T10:00:00Z") },
    timeZone: "Europe/Madrid",
    isQuiet: true,
  });
  progress.update({ ...atStart, waitMs: 300_000, waitReason: "GET /orders: answered 429 (1 try)" });
  expect(String(out.read())).toContain(
    "reconcile: waits until 11:05:00 (Europe/Madrid) for the service: GET /orders: answered 429 (1 try).",
  );
});

test("a service that asks for a day ends the command as INCOMPLETE, with the reason and the time", async () => {
  const service = await startHostileService();
  const stand = await createReconcileStand(service.url);
  service.quirks = {
    instead: ({ nth }) =>
      nth > 0 ? { ...refusal(429, "rate_limit_exceeded"), headers: { "retry-after": "86400" } } : undefined,
  };
  const env = {
    DATABASE_URL: stand.database.url,
    SVC_BASE_URL: service.url,
    SVC_API_KEY: testKey,
  };
  try {
    const told = await runCommand(registerReconcile, ["reconcile"], { env });
    expect(told).toMatchObject({ exitCode: 4, error: null });
    expect(told.out).toMatch(/answered 429 rate_limit_exceeded.*\n.*may be asked again at 20.*\n.*INCOMPLETE/);
    const { out } = await runCommand(registerReconcile, ["import", "--json"], { env });
    expect(JSON.parse(out)).toMatchObject({
      complete: false,
      resume_after: expect.stringMatching(/^20/),
    });
  } finally {
    await stand.close();
    await service.close();
  }
});

test("a line of progress comes each ten seconds at most, and not again while nothing has moved", () => {
  const out = new PassThrough();
  const clock = { at: 0, now: () => new Date(clock.at) };
  const progress = createReconcileProgress(out as unknown as NodeJS.WriteStream, {
    clock,
    timeZone: "UTC",
    isQuiet: false,
  });
  const walk: WalkProgress = { ...atStart, slices: 4, slicesDone: 4, doubtful: 2, waitMs: 0 };
  const lines = () => String(out.read() ?? "").match(/4 of 4 slices.*/g) ?? [];
  // The service did not answer for three minutes: one line is due, not eighteen.
  clock.at = 180_000;
  for (let n = 0; n < 20; n++) progress.update(walk);
  expect(lines()).toHaveLength(1);
  for (clock.at = 190_000; clock.at <= 780_000; clock.at += 1_000) progress.update(walk);
  expect(lines()).toEqual([]);
  progress.update({ ...walk, doubtful: 1 });
  expect(lines()).toEqual([expect.stringContaining("1 to recheck")]);
});

test("a dry run prints the plan, and writes nothing; what makes no sense is refused", async () => {
  const service = await startHostileService();
  const stand = await createReconcileStand(service.url);
  try {
    await stand.run();
    const env = {
      DATABASE_URL: stand.database.url,
      SVC_BASE_URL: service.url,
      SVC_API_KEY: testKey,
      RECONCILE_GRACE_SECONDS: "0",
    };
    const run = (...args: string[]) => runCommand(registerReconcile, ["reconcile", ...args], { env });
    const runs = () => stand.database.db("reconcile.runs").pluck("id");
    const before = await runs();
    const asked = service.requests.length;
    const { out } = await run("--dry-run", "--json", "--from", "2020-01-01T00:00:00Z");
    expect(service.requests.length).toBe(asked + 1);
    const { slices, ...plan } = JSON.parse(out);
    expect(plan).toEqual({ t0: expect.any(String), page_size: 500, estimated_calls: 4 });
    expect(slices).toHaveLength(4);
    expect(slices[1]).toEqual({
      step: "range",
      resource: "order",
      path: "/orders",
      filter: { expand: "items,transactions" },
      direction: "newest_first",
      created_from: "2020-01-01T00:00:00.000000Z",
      created_before: plan.t0.replace(".000Z", ".000000Z"),
      reason: expect.any(String),
      rows: 30,
      calls: 1,
    });
    expect((await run("--dry-run")).out).toContain("Nothing was changed");
    for (const args of [
      ["--from", "2099-01-01T00:00:00Z"],
      ["--from", "2020-01-02T00:00:00Z", "--to", "2020-01-01T00:00:00Z"],
      ["--full", "--from", "2020-01-01T00:00:00Z"],
    ]) {
      expect((await run(...args)).error, args.join(" ")).toMatchObject({ exitCode: 64 });
    }
    expect(await runs()).toEqual(before);
  } finally {
    await stand.close();
    await service.close();
  }
});

test("a run beside another one reads nothing and ends with the exit code of the documents", async () => {
  const service = await startHostileService();
  const stand = await createReconcileStand(service.url);
  try {
    const env = {
      DATABASE_URL: stand.database.url,
      SVC_BASE_URL: service.url,
      SVC_API_KEY: testKey,
    };
    const beside = await withRunLease(stand.deps, () => runCommand(registerReconcile, ["reconcile"], { env }));
    const { error } = beside.kind === "done" ? beside.value : {};
    const documents = await readFile(new URL("../../../docs/operations.md", import.meta.url), "utf8");
    const [, code] = /^\| (\d+) .*another run in progress/m.exec(documents) ?? [];
    expect(error).toMatchObject({
      message: expect.stringMatching(
        `Another process is reconciling this database: process ${process.pid} on .*, since .*Z\\. It holds the lease until`,
      ),
      exitCode: Number(code),
    });
    expect(service.requests).toEqual([]);
  } finally {
    await stand.close();
    await service.close();
  }
});
