import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { removeAbandonedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { signalIfThere } from "./process-tree.ts";

const prefix = "tallyhook-test-";
const clearScript = fileURLToPath(new URL("clear-run.ts", import.meta.url));
/** How long a process may take to end before it is killed. */
const graceMs = 5_000;
const memory = "/dev/shm";
/** Room for a run's files (some 350 MB were seen), and for those of other programs. */
const memoryBytes = 4 * 1024 ** 3;

/**
 * Everything that a run makes goes into one temporary directory, and bears it in its environment. It is cleared at the
 * end, and when the run does not get there (Ctrl-C, kill -9), by a process that waits for just that. That process also
 * removes the directory that vitest made for itself, which vitest leaves behind when it is interrupted.
 */
export async function setup(project: Pick<TestProject, "tmpDir">): Promise<() => Promise<void>> {
  const before = process.env["TMPDIR"];
  const place = before ?? ((await hasMemoryForFiles()) ? memory : tmpdir());
  for (const each of new Set([place, tmpdir()])) await clearOrphans(each);
  const directory = await mkdtemp(join(place, `${prefix}${process.pid}-`));
  // Other users' processes work in it too, so it has the modes of the system's directory.
  await chmod(directory, 0o1777);
  const program = [process.execPath, "--import", "tsx", clearScript, directory, project.tmpDir];
  // A session of its own, which Ctrl-C does not reach. It reads a line at a normal end, and end of input at any other.
  const caretaker = spawn("/bin/sh", ["-c", 'read -r done || exec "$@"', "sh", ...program], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  caretaker.unref();
  caretaker.stdin.on("error", () => {});
  process.env["TMPDIR"] = directory;
  return async () => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    await clear(directory);
    caretaker.stdin.end("done\n");
  };
}

/**
 * Whether files can be kept in memory, and programs run there. Hundreds of databases are made and dropped in a run: on
 * a disk's file system, the kernel's work for their files alone is a seventh of the run's time. Docker gives little.
 */
async function hasMemoryForFiles(): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const mounts = (await readFile("/proc/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  const options = mounts.findLast(([, at, type]) => at === memory && type === "tmpfs")?.[3];
  if (options === undefined || /\b(noexec|ro)\b/.test(options)) return false;
  const { bavail, bsize } = await statfs(memory);
  return bavail * bsize >= memoryBytes;
}

/** Removes a run's directory, with the servers whose data is in it. */
async function clear(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    for (const dataDir of [join(directory, name), join(directory, name, ".data")]) {
      if (!existsSync(join(dataDir, "postgres"))) continue;
      // What cannot be stopped in good order loses its data under its feet, and ends by itself.
      await removeAbandonedPostgres(dataDir).catch(() => false);
    }
  }
  // A server that ends at this moment may still write.
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** Ends the remaining processes of a finished run, and clears its directory and vitest's. */
export async function clearRun(directory: string, runnersDirectory?: string): Promise<void> {
  const deadlineMs = performance.now() + graceMs;
  while (processesOf(directory).length > 0 && performance.now() < deadlineMs) await sleep(50);
  for (const pid of processesOf(directory)) signalIfThere(pid, "SIGKILL");
  while (processesOf(directory).length > 0) await sleep(10);
  await clear(directory);
  if (runnersDirectory !== undefined) await rm(runnersDirectory, { recursive: true, force: true });
}

/** The processes of a run have its directory in their environments. Linux only: elsewhere none are found. */
function processesOf(directory: string): number[] {
  if (process.platform !== "linux") return [];
  const mark = `TMPDIR=${directory}`;
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && environmentOf(pid).includes(mark) && commandLine(pid) !== null);
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    // It has ended, or is another user's.
    return [];
  }
}

/** Removes the remains of runs whose caretaker was killed as well. */
async function clearOrphans(place: string): Promise<void> {
  for (const name of await readdir(place)) {
    const [, owner] = new RegExp(`^${prefix}(\\d+)-\\w+$`).exec(name) ?? [];
    if (owner === undefined || commandLine(Number(owner)) !== null) continue;
    // Another user's, or another run clears it at this moment.
    await clearRun(join(place, name)).catch(() => {});
  }
}
