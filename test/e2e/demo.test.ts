import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { stopAbandonedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { eventually } from "../support/eventually.ts";
import { processesWith } from "../support/process-tree.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";

/** Under the directory in which the program is started. */
const dataDirectory = (): string => join(tmpdir(), ".data");

/** What the demo of this process has under `.data/`. */
const dataOf = async ({ pid }: Program): Promise<string[]> =>
  (await readdir(dataDirectory())).filter((name) => name.startsWith(`demo-${pid}-`));

let directories: string[] = [];
afterAll(async () => {
  await killPrograms();
  const names = (await readdir(dataDirectory())).filter((name) => directories.includes(name));
  for (const left of names.map((name) => join(dataDirectory(), name))) {
    await stopAbandonedPostgres(left);
    await rm(left, { recursive: true, force: true });
  }
});

test("Ctrl-C in the middle of the demo ends all of it, its server and its data, and those of one that was killed", async () => {
  const killed = runTallyhook(["demo"], {});
  await eventually("its server runs", () => processesWith(`demo-${killed.pid}-`).length > 0, {
    withinMs: 60_000,
  });
  directories = await dataOf(killed);
  await killed.kill();

  const program = runTallyhook(["demo"], {});
  await program.printed("Traffic:");
  directories.push(...(await dataOf(program)));
  const servers = () => directories.flatMap((name) => processesWith(name));
  expect(servers()).not.toEqual([]);
  expect(await dataOf(killed)).toEqual([]);

  const beganMs = performance.now();
  program.signalGroup("SIGINT");
  await program.exited;
  expect(performance.now() - beganMs).toBeLessThan(60_000);
  expect(program.output()).toContain("Stopped by SIGINT. Nothing of the demo is left.");
  expect(await dataOf(program)).toEqual([]);
  expect(servers()).toEqual([]);
});
