import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { expectCyclesWithoutGap, expectSumsToAgree } from "./accounting.ts";
import { type Json, aCustomer, aSubscription, register, startReceiver, startTestSandbox } from "./harness.ts";

const directory = mkdtempSync(join(tmpdir(), "sandbox-state-"));
afterAll(() => rmSync(directory, { recursive: true }));
const fileNamed = (name: string) => join(directory, name);

/** `tallyhook sandbox` with a state file, as a process of its own. */
async function startProcess(stateFile: string) {
  const program = [inject("program"), "sandbox", "--port", "0", "--state", stateFile];
  const child = spawn(process.execPath, program, {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const started = once(child.stdout, "data") as Promise<[Buffer]>;
  const ended = once(child, "exit") as Promise<[number | null]>;
  const first = await Promise.race([started, ended]);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(first[0]))?.[0];
  return { child, url, ended, said: () => said };
}

/** Resolves when something is in a file that was not there. */
const writingBegins = (path: string) =>
  new Promise<void>((resolve) => {
    const watcher = watch(dirname(path), (_, name) => {
      if (name !== basename(path) || sizeOf(path) === 0) return;
      watcher.close();
      resolve();
    });
  });

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** A state file is always whole. */
function ordersIn(stateFile: string): number {
  if (!existsSync(stateFile)) return 0;
  const { merchants } = JSON.parse(readFileSync(stateFile, "utf8"));
  const spaces = Object.values(merchants).flatMap(({ spaces }: Json) => Object.values(spaces));
  return spaces.reduce<number>((sum, { tables }: Json) => sum + tables.orders.length, 0);
}

const post = (url: string, body: object) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("a state file has one sandbox: a second process is refused until the first ends, however it ends", async () => {
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

test("kill -9 in the middle of writing leaves one whole moment, time after time", async () => {
  const stateFile = fileNamed("killed.json");
  const unfinished = `${stateFile}.new`;
  const traffic = { orders: 600, subscriptions: 20, days: 20 };
  let known = 0;
  let cutOff = 0;
  // At times the writing ends before the kill, which then hits between two writings: tried until it was cut off.
  for (let round = 0; round < 2 || cutOff === 0; round++) {
    const { child, url, ended } = await startProcess(stateFile);
    const begun = writingBegins(unfinished);
    const answered = post(`${url}/_sandbox/traffic`, { ...traffic, seed: round });
    let kept = 0;
    if (round === 0) {
      // The first state that is on disk may be of a moment in the midst of the traffic.
      expect((await answered).status).toBe(200);
      await eventually("all of the traffic is on disk", () => (kept = ordersIn(stateFile)) >= traffic.orders, {
        withinMs: 60_000,
      });
    } else {
      await begun;
    }
    child.kill("SIGKILL");
    await Promise.all([ended, answered.catch(() => {})]);
    if (existsSync(unfinished)) cutOff++;
    const next = await startTestSandbox(1, { stateFile });
    expect(existsSync(unfinished)).toBe(false);
    const snapshot = await next.control("GET", "/snapshot");
    expectSumsToAgree(snapshot);
    expectCyclesWithoutGap(snapshot);
    expect(snapshot.orders.length).toBeGreaterThanOrEqual(Math.max(known, kept));
    known = snapshot.orders.length;
    await next.close();
  }
  expect(known).toBeGreaterThanOrEqual(traffic.orders);
  expect(statSync(stateFile).mode & 0o077).toBe(0);
  // Four starts of a program at least, and traffic in half of them.
}, 300_000);

test("a clock that ran has gone on: what fell due meanwhile happened at its own time, and is delivered after it", async () => {
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

test("a reset is kept too, also where as much happened after it as before", async () => {
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

test.each([
  ['{"format":2,"seed"', "is not whole, or no JSON"],
  ["", "is not whole, or no JSON"],
  ['{"format":1,"seed":"1"}', "was written by another version of the sandbox (format 1; this one has"],
  ['{"format":2,"seed":"1"}', "is not one of this sandbox"],
  ["[]", "is not one of this sandbox"],
])("a state file that says %j stops the start, which says why and leaves it as it is", async (text, why) => {
  const stateFile = fileNamed("bad.json");
  writeFileSync(stateFile, text);
  const start = startTestSandbox(1, { stateFile });
  await expect(start).rejects.toThrow(`The state file ${stateFile} ${why}`);
  await expect(start).rejects.toThrow(
    'or remove it to begin with an empty sandbox. "node src/bin/tallyhook.js start --reset"',
  );
  expect(readFileSync(stateFile, "utf8")).toBe(text);
});

test("a state that cannot be written any more is told at the end, and the last one that could is kept", async () => {
  const place = mkdtempSync(join(directory, "gone-"));
  const stateFile = join(place, "state.json");
  const sandbox = await startTestSandbox(1, { stateFile });
  await aCustomer(sandbox, null);
  // Nothing can be made where no directory is, not even by root.
  renameSync(place, `${place}-moved`);
  await expect(sandbox.close()).rejects.toThrow(
    `The last state of the sandbox cannot be written to ${stateFile} (ENOENT)`,
  );
});

describe.runIf(process.getuid?.() === 0)("as root in a directory of another user", () => {
  const owner = 1;
  let own: string;
  let victim: string;
  beforeEach(() => {
    chmodSync(directory, 0o755);
    own = mkdtempSync(join(directory, "own-"));
    victim = join(directory, "victim");
    writeFileSync(victim, "untouched");
    chownSync(own, owner, owner);
  });
  const ownerOf = (path: string) => lstatSync(path).uid;

  test("all that is kept belongs to that user, who can go on with it without root", async () => {
    const stateFile = join(own, "state.json");
    const sandbox = await startTestSandbox(1, { stateFile });
    await aCustomer(sandbox, null);
    await sandbox.close();
    const made = readdirSync(own, { recursive: true, encoding: "utf8" });
    expect(made).toEqual(expect.arrayContaining(["state.json", "state.json.lock", "state.json.lock/lock-name"]));
    for (const name of made) expect([name, ownerOf(join(own, name))]).toEqual([name, owner]);
  });

  test("follows no link where a state is written, read or locked", async () => {
    const stateFile = join(own, "state.json");
    const plant = (name: string, target = victim) => {
      symlinkSync(target, join(own, name));
      lchownSync(join(own, name), owner, owner);
    };
    for (const name of ["state.json.new", "state.json.partial"]) plant(name);
    const sandbox = await startTestSandbox(1, { stateFile });
    await aCustomer(sandbox, null);
    await sandbox.close();
    expect(readFileSync(victim, "utf8")).toBe("untouched");

    rmSync(stateFile);
    plant("state.json");
    await expect(startTestSandbox(1, { stateFile })).rejects.toThrow(/state\.json is a link/);
    rmSync(stateFile);

    rmSync(`${stateFile}.lock`, { recursive: true });
    const foreign = mkdtempSync(join(directory, "foreign-"));
    plant("state.json.lock", foreign);
    await expect(startTestSandbox(1, { stateFile })).rejects.toThrow(/state\.json\.lock is a link/);
    expect(readdirSync(foreign)).toEqual([]);
  });
});
