import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { ensureLocalKey } from "../../src/platform/encryption.ts";

let directory: string;
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), "tallyhook-key-")), ".data");
});
afterEach(() => rm(join(directory, ".."), { recursive: true, force: true }));

test("the key is made once, for its owner's eyes only", async () => {
  const key = await ensureLocalKey(directory);
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(await ensureLocalKey(directory)).toBe(key);
  expect((await stat(join(directory, "encryption-key"))).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(["encryption-key"]);
});

test("of many first starts at once all have the same key", async () => {
  const keys = await Promise.all(Array.from({ length: 10 }, () => ensureLocalKey(directory)));
  expect(new Set(keys).size).toBe(1);
});

test("a damaged key is refused, never replaced", async () => {
  await ensureLocalKey(directory);
  await writeFile(join(directory, "encryption-key"), "cut sho");
  await expect(ensureLocalKey(directory)).rejects.toBeInstanceOf(ConfigurationError);
});
