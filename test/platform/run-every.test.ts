import { expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type Loop, runEvery } from "../../src/platform/run-every.ts";
import { eventually } from "../support/eventually.ts";

const deps = { log: createLog({ level: "silent", name: "test" }), name: "test" };
const hour = 3_600_000;

/** A loop whose rounds wait until they are told how they end. */
function heldLoop(intervalMs = hour) {
  const rounds: { end(more?: boolean): void; fail(): void }[] = [];
  const begun: (() => void)[] = [];
  const loop: Loop = runEvery(
    deps,
    intervalMs,
    () =>
      new Promise((resolve, reject) => {
        rounds.push({
          end: (more = false) => resolve({ more }),
          fail: () => reject(new Error("no database")),
        });
        begun.shift()?.();
      }),
  );
  const round = async (n: number) => {
    while (rounds.length < n) await new Promise<void>((resolve) => begun.push(resolve));
    return rounds[n - 1]!;
  };
  return { loop, rounds, round };
}

test("runs at once, and again at once while there is more", async () => {
  const { loop, round, rounds } = heldLoop();
  (await round(1)).end(true);
  (await round(2)).end(false);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(rounds).toHaveLength(2);
  await loop.close();
});

test("a nudge runs it at once when it rests, and once more when it is at work", async () => {
  const { loop, round, rounds } = heldLoop();
  (await round(1)).end();
  await new Promise((resolve) => setImmediate(resolve));
  loop.nudge();
  const second = await round(2);
  loop.nudge();
  loop.nudge();
  second.end();
  (await round(3)).end();
  await loop.close();
  expect(rounds).toHaveLength(3);
});

test("goes on after a round that failed", async () => {
  const { loop, round, rounds } = heldLoop(1);
  (await round(1)).fail();
  (await round(2)).end();
  (await round(3)).end();
  await loop.close();
  expect(rounds).toHaveLength(3);
});

test("is quiet from the start until a round ends or says that it goes on", async () => {
  let step = (): void => {};
  let end = (): void => {};
  const loop = runEvery(deps, hour, (goesOn) => {
    step = goesOn;
    return new Promise((resolve) => (end = () => resolve({ more: false })));
  });
  const quietFor = (ms: number) => eventually("it is quiet", () => loop.sinceProgressMs() >= ms);
  /** However long a busy machine takes for it. */
  const isQuietOnlySince = (beganMs: number) =>
    expect(loop.sinceProgressMs()).toBeLessThanOrEqual(performance.now() - beganMs);
  await quietFor(100);
  const steppedMs = performance.now();
  step();
  isQuietOnlySince(steppedMs);
  await quietFor(100);
  const endedMs = performance.now();
  end();
  await loop.close();
  isQuietOnlySince(endedMs);
});

test("closing waits for the round at work and starts no other", async () => {
  const { loop, round, rounds } = heldLoop(0);
  const first = await round(1);
  let isClosed = false;
  const closing = loop.close().then(() => {
    isClosed = true;
  });
  loop.nudge();
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(isClosed).toBe(false);
  first.end(true);
  await closing;
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(rounds).toHaveLength(1);
});
