import { constants, createReadStream } from "node:fs";
import { type FileHandle, lstat, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { UnreachableError, UsageError } from "./errors.ts";
import { errorCode } from "./postgres/errors.ts";

// Root may work in a directory that belongs to another user, who can replace our files with links. So links are never
// followed, files are always created new, and modes and owners are set on the open file, never by name.

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The content of one of our files; null when it does not exist. Throws `UnreachableError` when it is a link. */
export async function readIfExists(path: string): Promise<string | null> {
  const file = await openOwn(path, O_RDONLY | O_NONBLOCK);
  if (file === null) return null;
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/**
 * Writes a file that only its owner can read, whole or not at all: the old content stays until all of the new is
 * written and synced. A long text comes in pieces; between them, other work gets its turn. One writer at a time.
 */
export async function writeAtomically(path: string, content: string | Iterable<string>): Promise<void> {
  const unfinished = temporaryName(path);
  await rm(unfinished, { force: true });
  try {
    await writePrivate(unfinished, content);
    await rename(unfinished, path);
  } catch (error) {
    // On a full disk it would occupy the space that is missing. The caller must see why the write failed.
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}

/** Throws what `writeAtomically` would throw where it may not write; leaves `path` unchanged. */
export async function assertWritable(path: string): Promise<void> {
  const unfinished = temporaryName(path);
  await rm(unfinished, { force: true });
  await writePrivate(unfinished, "");
  await rm(unfinished);
}

/** The temporary name that `writeAtomically` uses; code that removes the file removes this one too. */
export const temporaryName = (path: string): string => `${path}.new`;

/**
 * Creates a file that only its owner can read, under any umask, and that survives a power failure. Rejects with EEXIST
 * where the name is taken.
 */
export async function writePrivate(path: string, content: string | Iterable<string>): Promise<void> {
  const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await file.chmod(0o600);
    await ownLikeParent(file, path);
    for (const text of typeof content === "string" ? [content] : batches(content)) {
      await file.appendFile(text);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

const batchLength = 64 * 1024;

/** Joins pieces until they are large enough for a write. */
function* batches(pieces: Iterable<string>): Generator<string> {
  let batch = "";
  for (const piece of pieces) {
    batch += piece;
    if (batch.length < batchLength) continue;
    yield batch;
    batch = "";
  }
  if (batch !== "") yield batch;
}

/**
 * Opens one of our logs for appending, and creates it when it is missing. The caller closes it. Throws
 * `UnreachableError` when it is a link, hard or symbolic, or not a regular file.
 */
export async function openLogFile(path: string, mode: number): Promise<FileHandle> {
  const file = await openOwn(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, mode);
  if (file === null) throw new Error(`${path} was removed while it was being created`);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1) throw notOurs(path);
    await ownLikeParent(file, path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function openOwn(path: string, flags: number, mode?: number): Promise<FileHandle | null> {
  try {
    return await open(path, flags | O_NOFOLLOW, mode);
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT") return null;
    // ENXIO: a pipe without a reader.
    if (code === "ELOOP" || code === "ENXIO") throw notOurs(path);
    throw error;
  }
}

const notOurs = (path: string) =>
  new UnreachableError(
    `${path} is a link or not a regular file, so Tallyhook did not make it. Find out who did, then remove it.`,
  );

/**
 * Creates a directory and its missing parents. Root follows a link in its place only if root, or the owner of the
 * link's target, made that link; otherwise throws `UnreachableError`.
 */
export async function makeDirectory(path: string): Promise<void> {
  if (await exists(path)) return refuseForeignLink(path);
  await makeDirectory(dirname(path));
  try {
    await makeNewDirectory(path, 0o777);
  } catch (error) {
    const wasMadeMeanwhile = errorCode(error) === "EEXIST";
    if (wasMadeMeanwhile && (await exists(path))) return refuseForeignLink(path);
    throw error;
  }
}

async function refuseForeignLink(path: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const [named, meant] = [await lstat(path), await stat(path)];
  if (!named.isSymbolicLink() || named.uid === 0 || named.uid === meant.uid) return;
  throw new UnreachableError(
    `${path} is a link that the user with id ${named.uid} made, to a directory of another user. ` +
      `Root does not follow it. Find out why it is there, then remove it.`,
  );
}

/**
 * Like `makeDirectory`, for one directory that only its owner can enter. Its parent must exist. A directory that exists
 * keeps its mode.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  try {
    await makeNewDirectory(path, 0o700);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    await makeDirectory(path);
  }
}

/** Creates one directory; root gives it to the owner of its parent. The umask applies to mode 777 only. */
export async function makeNewDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode });
  const directory = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    if (mode !== 0o777) await directory.chmod(mode);
    await ownLikeParent(directory, path);
  } finally {
    await directory.close();
  }
}

/** A file that root creates in a user's directory belongs to that user, who will continue without root. */
async function ownLikeParent(file: FileHandle, path: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(dirname(path));
  if (uid !== 0) await file.chown(uid, gid);
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** The highest WEBHOOK_MAX_BYTES, so that commands can read every body that a receiver can store. */
const maxBytes = 64 * 1024 * 1024;

/** Reads a file or pipe given to a command. Throws `UsageError`, also for a device that never ends. */
export async function readInputFile(file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(file, { end: maxBytes })) {
      bytes += (chunk as Buffer).length;
      chunks.push(chunk as Buffer);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`${file} cannot be read (${code}). Name a file that exists and that this user may read.`, {
      cause,
    });
  }
  if (bytes > maxBytes) {
    throw new UsageError(
      `${file} is longer than ${maxBytes} bytes, the most that a command reads. Name a shorter file.`,
    );
  }
  return Buffer.concat(chunks);
}
