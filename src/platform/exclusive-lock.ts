import { randomBytes, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { link, open, readFile, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UnreachableError } from "./errors.ts";
import { errorCode } from "./postgres/errors.ts";
import { exists, readIfExists, writePrivate, writeAtomically } from "./files.ts";

const pollMs = 25;

/**
 * Runs `work` while no other process of this machine runs work under the lock of the same directory. The kernel
 * releases the lock when its process ends, even by kill -9, so no stale lock remains. Waits `timeoutMs` for its turn,
 * then throws `UnreachableError`. Not reentrant.
 */
export async function withExclusiveLock<T>(
  directory: string,
  work: () => Promise<T>,
  { timeoutMs }: { timeoutMs: number },
): Promise<T> {
  const tryLock = process.platform === "linux" ? await socketLock(directory) : fileLock(directory);
  const deadlineMs = performance.now() + timeoutMs;
  let release = await tryLock();
  while (release === null) {
    if (performance.now() > deadlineMs) {
      throw new UnreachableError(
        `Another process has been starting or stopping something in ${directory} for more than ` +
          `${timeoutMs / 1000} s. Look for a Tallyhook process that hangs and end it. If there is none, remove the ` +
          `file lock-name there: another program has taken the name in it.`,
      );
    }
    await sleep(pollMs);
    release = await tryLock();
  }
  try {
    return await work();
  } finally {
    await release();
  }
}

type Release = () => Promise<void>;
type TryLock = () => Promise<Release | null>;

/**
 * Linux: the lock is a name in the abstract socket namespace, which the kernel frees with its process. Every user of
 * the machine can see the names in use and take a free one. So each name serves once: it is written in a file that only
 * the directory's owner can read, and the holder writes the next name there before it releases the lock. The process
 * that holds the name in the file holds the lock.
 */
async function socketLock(directory: string): Promise<TryLock> {
  const file = join(await realpath(directory), "lock-name");
  return async () => {
    const name = (await readIfExists(file)) ?? (await placeFirstName(file));
    const close = await bindName(name.trim());
    if (close === null) return null;
    // The last holder released the name after we read it and before we took it.
    const isCurrent = (await readIfExists(file)) === name;
    if (!isCurrent) {
      await close();
      return null;
    }
    return async () => {
      try {
        // The directory may be gone: its owner may have removed it under the lock.
        if (await exists(file)) await writeAtomically(file, newName());
      } finally {
        await close();
      }
    };
  };
}

const newName = (): string => `${randomBytes(16).toString("hex")}\n`;

/** One of several concurrent processes writes it. Returns the file's resulting content. */
async function placeFirstName(file: string): Promise<string> {
  const own = `${file}.${randomUUID()}`;
  try {
    await writePrivate(own, newName());
    await link(own, file);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  } finally {
    await rm(own, { force: true });
  }
  return readFile(file, "utf8");
}

/** Null when another process has the name. */
function bindName(name: string): Promise<Release | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    server.listen({ path: `\0tallyhook-${name}`, exclusive: true }, () => {
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}

/** BSD and macOS: a file opened with O_EXLOCK, a flag that Node passes on but has no constant for. */
function fileLock(directory: string): TryLock {
  const exclusiveLockFlag = 0x20;
  const { O_CREAT, O_RDWR, O_NONBLOCK } = constants;
  const flags = O_CREAT | O_RDWR | O_NONBLOCK | exclusiveLockFlag;
  return async () => {
    try {
      const file = await open(join(directory, "lock"), flags, 0o600);
      return () => file.close();
    } catch (error) {
      if (["EAGAIN", "EWOULDBLOCK"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
      throw error;
    }
  };
}
