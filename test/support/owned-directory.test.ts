import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeOwnedDirectory, removeOrphanedDirectories } from "./owned-directory.ts";

test("what a killed run left behind goes, what a live one uses and what is not ours stays", async () => {
  const place = await mkdtemp(join(tmpdir(), "tallyhook-owned-"));
  onTestFinished(() => rm(place, { recursive: true }));
  const killed = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  const [orphan, foreign] = [`image-${killed.pid}-abc123`, "image-abc123"];
  await mkdir(join(place, orphan, "src"), { recursive: true });
  await writeFile(join(place, orphan, "src", "main.js"), "");
  await mkdir(join(place, foreign));
  const own = basename(await makeOwnedDirectory({ prefix: "image-", place }));

  await removeOrphanedDirectories({ prefix: "image-", place });
  expect((await readdir(place)).sort()).toEqual([own, orphan, foreign].sort());

  killed.kill("SIGKILL");
  await once(killed, "exit");
  await removeOrphanedDirectories({ prefix: "image-", place });
  expect((await readdir(place)).sort()).toEqual([own, foreign].sort());
});
