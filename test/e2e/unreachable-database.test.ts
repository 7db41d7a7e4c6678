import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { killPrograms, runTallyhook } from "./program.ts";

/** Accepts connections and never says a word. */
const mute = createServer();
beforeAll(async () => {
  mute.listen(0, "127.0.0.1");
  await once(mute, "listening");
});
afterAll(async () => {
  await killPrograms();
  mute.close();
});

const urlOf = (port: number) => `postgres://tallyhook:hunter2@127.0.0.1:${port}/tallyhook`;

test("a database that refuses, or never answers, ends a command in time with code 2 and what to do", async () => {
  const closedPort = await freePort();
  const refused = runTallyhook(["start"], { DATABASE_URL: urlOf(closedPort) });
  const { port } = mute.address() as AddressInfo;
  const unanswered = runTallyhook(["migrate"], { DATABASE_URL: urlOf(port) });
  await once(mute, "connection");
  const beganMs = performance.now();
  const exits = [await unanswered.exited, await refused.exited];
  // With the start of the process this stays under the 10 s that a command may take to say so.
  expect(performance.now() - beganMs).toBeLessThan(7_500);
  expect(exits).toEqual(Array.from({ length: 2 }, () => ({ code: 2, signal: null })));
  expect(unanswered.output()).toContain(
    `tallyhook: DATABASE_URL: 127.0.0.1:${port} does not answer as PostgreSQL within 6 s.`,
  );
  expect(refused.output()).toContain(`tallyhook: DATABASE_URL: nothing listens on 127.0.0.1:${closedPort}.`);
  expect(unanswered.output() + refused.output()).not.toContain("hunter2");
});
