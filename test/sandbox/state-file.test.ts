import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, expect, inject, test } from "vitest";

import { eventually } from "../support/eventually.ts";
import { expectCyclesWithoutGap, expectSumsToAgree } from "./accounting.ts";
import type { Json } from "./harness.ts";
import { aCustomer, aSubscription, register, startReceiver, startTestSandbox } from "./harness.ts";

const directory = mkdtempSync(join(tmpdir(), "sandbox-state-"));
afterAll(() => rmSync(directory, { recursive: true }));
const fileNamed = (name: string) => join(directory, name);

/** `tallyhook sandbox` with a state file, as a process of its own. */
async function startProcess(stateFile: string) {
  const program = [inject("program"), "sandbox", "--port", "0", "--state", stateFile];
  const child = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const started = once(child.stdout, "data") as Promise<[Buffer]>;
  const ended = once(child, "exit") as Promise<[number | null]>;
  const first = await Promise.race([started, ended]);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(first[0]))?.[0];
  return { child, url, ended, said: () => said };
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

const post = (url: string, body: object) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("[A] 537 a state file has one sandbox: a second process is refused until the first ends, however it ends", async () => {
  const stateFile = fileNamed("one.json");
  const first = await startProcess(stateFile);
  expect(first.url).toBeDefined();
  const second = await startProcess(stateFile);
  expect((await second.ended)[0]).toBe(2);
  expect(second.said()).toMatch(/one\.json is in use by another sandbox/);
  await expect(startTestSandbox(1, { stateFile })).rejects.toThrow(/in use by another sandbox/);
  first.child.kill("SIGKILL");
  await first.ended;
  const third = await startTestSandbox(1, { stateFile });
  await third.close();
  const other = await startTestSandbox(1, { stateFile });
  await other.close();
});

test("[A] 537 kill -9 in the middle of writing leaves one whole moment, time after time", async () => {
  const stateFile = fileNamed("killed.json");
  let known = 0;
  for (let round = 0; round < 4; round++) {
    const before = sizeOf(stateFile);
    const { child, url, ended } = await startProcess(stateFile);
    const traffic = { orders: 1500, subscriptions: 50, seed: round, days: 20 };
    await post(`${url}/_sandbox/traffic`, traffic);
    // Every other time the new state is there, and the next one may be on its way.
    const isWritten = () => sizeOf(stateFile) > before + 100_000;
    const isBeingWritten = () => isWritten() || sizeOf(`${stateFile}.partial`) > 100_000;
    await eventually(
      "the traffic is on its way to disk",
      round % 2 === 0 ? isBeingWritten : isWritten,
      { withinMs: 60_000 },
    );
    if (round % 2 === 1) await post(`${url}/_sandbox/clock`, { advance_seconds: 86_400 });
    await sleep(round * 10);
    child.kill("SIGKILL");
    await ended;
    const next = await startTestSandbox(1, { stateFile });
    expect(existsSync(`${stateFile}.partial`)).toBe(false);
    const snapshot = await next.control("GET", "/snapshot");
    expectSumsToAgree(snapshot);
    expectCyclesWithoutGap(snapshot);
    expect(snapshot.orders.length).toBeGreaterThanOrEqual(known);
    known = snapshot.orders.length;
    await next.close();
  }
  expect(known).toBeGreaterThan(1500);
  expect(statSync(stateFile).mode & 0o077).toBe(0);
  // Eight starts of a program, and traffic each time.
}, 300_000);

test("[A] 537 a clock that ran has gone on: what fell due meanwhile happened at its own time, and is delivered after it", async () => {
  const stateFile = fileNamed("clock.json");
  let wallMs = Date.parse("2026-03-01T09:00:00Z");
  const wallClock = { now: () => new Date(wallMs) };
  const first = await startTestSandbox(1, { stateFile, wallClock });
  let status = 500;
  const receiver = await startReceiver(() => status);
  await register(first, receiver.url, ["subscription.charged"]);
  const billing_cycle = { interval: "day", interval_count: 1 };
  const { id } = await aSubscription(first, await aCustomer(first), { billing_cycle });
  await first.close();

  wallMs += 3.5 * 86_400_000;
  status = 200;
  const second = await startTestSandbox(1, { stateFile, wallClock });
  const { clock } = await second.control("GET", "");
  expect(clock.now).toBe("2026-03-04T21:00:00.000Z");
  const { cycles } = await second.ok("GET", `/v1/subscriptions/${id}?expand=cycles`);
  expect(cycles.map((cycle: Json) => cycle.billed_at.slice(0, 13))).toEqual([
    "2026-03-01T09",
    "2026-03-02T09",
    "2026-03-03T09",
    "2026-03-04T09",
  ]);
  await second.control("GET", "/idle");
  expect(receiver.received.map(({ event }) => event.created_at.slice(0, 10))).toEqual([
    "2026-03-02",
    "2026-03-03",
    "2026-03-04",
  ]);
  await second.control("POST", "/clock", { now: "2026-04-01T00:00:00Z" });
  await second.close();
  wallMs += 86_400_000;
  const third = await startTestSandbox(1, { stateFile, wallClock });
  expect((await third.control("GET", "")).clock.now).toBe("2026-04-01T00:00:00.000Z");
  await third.close();
  await receiver.close();
});

test("[A] 537 a reset is kept too, also where as much happened after it as before", async () => {
  const stateFile = fileNamed("reset.json");
  const first = await startTestSandbox(1, { stateFile });
  await aCustomer(first, null);
  const written = () => statSync(stateFile, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  await eventually("the first state is written", () => written() > 0, { withinMs: 60_000 });
  await first.control("POST", "/reset", { seed: "another" });
  const customer = await aCustomer(first, null);
  await first.close();
  const second = await startTestSandbox(1, { stateFile });
  expect((await second.control("GET", "")).seed).toBe("another");
  expect((await second.ok("GET", `/v1/customers/${customer.id}`)).email).toBe(customer.email);
  await second.close();
});
