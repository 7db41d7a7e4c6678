import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UnreachableError } from "./errors.ts";

const pollMs = 25;

/**
 * Runs `work` while no other process of this machine runs work under the lock of the same directory. The
 * kernel holds the lock, so it ends with its process, however that ends, and nothing stale is left behind.
 * Waits `timeoutMs` for its turn, then throws `UnreachableError`. Not reentrant.
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
          `${timeoutMs / 1000} s. Look for a hanging process of Tallyhook and end it.`,
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

/** Linux: a name in the abstract socket namespace, made of the directory's inode, which any path to it shares. */
async function socketLock(directory: string): Promise<TryLock> {
  const { dev, ino } = await stat(directory);
  const path = `\0tallyhook-${dev}-${ino}`;
  return () =>
    new Promise((resolve, reject) => {
      const server = createServer((socket) => socket.destroy());
      server.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "EADDRINUSE") resolve(null);
        else reject(error);
      });
      server.listen({ path, exclusive: true }, () => {
        resolve(() => new Promise((done) => server.close(() => done())));
      });
    });
}

/** BSD and macOS: a file opened with O_EXLOCK, a flag that Node passes on but does not name. */
function fileLock(directory: string): TryLock {
  const exclusiveLockFlag = 0x20;
  const { O_CREAT, O_RDWR, O_NONBLOCK } = constants;
  const flags = O_CREAT | O_RDWR | O_NONBLOCK | exclusiveLockFlag;
  return async () => {
    try {
      const file = await open(join(directory, "lock"), flags, 0o600);
      return () => file.close();
    } catch (error) {
      if (["EAGAIN", "EWOULDBLOCK"].includes((error as NodeJS.ErrnoException).code ?? ""))
        return null;
      throw error;
    }
  };
}
