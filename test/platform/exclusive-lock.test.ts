import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { UnreachableError } from "../../src/platform/errors.ts";
import { withExclusiveLock } from "../../src/platform/exclusive-lock.ts";

const timeoutMs = 10_000;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "tallyhook-lock-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test("work under one directory's lock never overlaps, whatever path names the directory", async () => {
  const alias = join(directory, "alias");
  await symlink(directory, alias);
  let inside = 0;
  const overlaps: number[] = [];
  const work = async () => {
    overlaps.push(++inside);
    await new Promise(setImmediate);
    inside--;
  };
  const paths = [directory, alias, directory, alias, directory];
  await Promise.all(paths.map((path) => withExclusiveLock(path, work, { timeoutMs })));
  expect(overlaps).toEqual([1, 1, 1, 1, 1]);
});

test("what the work gives or throws comes out, and the lock is free again", async () => {
  const failing = withExclusiveLock(directory, () => Promise.reject(new Error("x")), { timeoutMs });
  await expect(failing).rejects.toThrow("x");
  expect(await withExclusiveLock(directory, async () => "done", { timeoutMs })).toBe("done");
});

test.runIf(process.platform === "linux")(
  "a name that was seen while the lock was held keeps nobody out afterwards",
  async () => {
    const seen = new Set<string>();
    const look = async () => {
      const sockets = await readFile("/proc/net/unix", "utf8");
      for (const [, name] of sockets.matchAll(/@(tallyhook-\S+)/g)) seen.add(name ?? "");
    };
    await withExclusiveLock(directory, look, { timeoutMs });
    expect(seen.size).toBeGreaterThan(0);
    const squatters = [...seen].map((name) => createServer().listen({ path: `\0${name}` }));
    for (const squatter of squatters) squatter.on("error", () => {});
    try {
      expect(await withExclusiveLock(directory, async () => "done", { timeoutMs })).toBe("done");
    } finally {
      for (const squatter of squatters) squatter.close();
    }
  },
);

test("a directory's first lock is had without waiting", async () => {
  const fresh = await mkdtemp(join(directory, "fresh-"));
  expect(await withExclusiveLock(fresh, async () => "done", { timeoutMs: 0 })).toBe("done");
});

test("waiting too long is an error that says so", async () => {
  await withExclusiveLock(
    directory,
    async () => {
      const second = withExclusiveLock(directory, async () => {}, { timeoutMs: 30 });
      await expect(second).rejects.toBeInstanceOf(UnreachableError);
    },
    { timeoutMs },
  );
});

test("the lock of a process that was killed is free at once", async () => {
  const script = `
    import { withExclusiveLock } from "./dist/src/platform/exclusive-lock.js";
    await withExclusiveLock(process.argv[1], () => new Promise(() => {
      console.log("locked");
      setInterval(() => {}, 1000);
    }), { timeoutMs: 1000 });`;
  const holder = spawn(process.execPath, ["--input-type=module", "-e", script, directory], {
    cwd: inject("image"),
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(holder.stdout, "data");
  const waiting = withExclusiveLock(directory, async () => {}, { timeoutMs: 30 });
  await expect(waiting).rejects.toThrow();
  holder.kill("SIGKILL");
  await once(holder, "close");
  await withExclusiveLock(directory, async () => {}, { timeoutMs: 1_000 });
});
