import { chmod, chown, mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** The content of a file; null when there is none. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Writes a file that only its owner can read, whole or not at all. One writer at a time. */
export async function writeWhole(path: string, content: string): Promise<void> {
  const unfinished = `${path}.new`;
  await writePrivate(unfinished, content);
  await rename(unfinished, path);
}

/** Writes a file that only its owner can read, whatever the umask, and that outlives a power failure. */
export async function writePrivate(path: string, content: string): Promise<void> {
  await writeFile(path, content, { mode: 0o600, flush: true });
  await chmod(path, 0o600);
  await ownLikeParent(path);
}

/** Makes a directory and those above it that are missing. */
export async function makeDirectory(path: string): Promise<void> {
  if (await exists(path)) return;
  await makeDirectory(dirname(path));
  try {
    await mkdir(path);
  } catch (error) {
    const wasMadeMeanwhile = (error as NodeJS.ErrnoException).code === "EEXIST";
    if (wasMadeMeanwhile && (await exists(path))) return;
    throw error;
  }
  await ownLikeParent(path);
}

/** What root makes in a user's directory belongs to that user, who will go on with it without root. */
export async function ownLikeParent(path: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(dirname(path));
  if (uid !== 0) await chown(path, uid, gid);
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
