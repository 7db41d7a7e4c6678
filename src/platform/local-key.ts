import { randomBytes, randomUUID } from "node:crypto";
import { link, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigurationError } from "./errors.ts";
import { makeDirectory, readIfThere, writePrivate } from "./private-files.ts";

/**
 * The encryption key of an installation on the embedded defaults: made once in the data directory, with mode
 * 600, and the same ever after, also when several processes start at once. 64 hex digits.
 */
export async function ensureLocalKey(dataDir: string): Promise<string> {
  const path = join(dataDir, "encryption-key");
  const own = `${path}.${randomUUID()}`;
  await makeDirectory(dataDir);
  try {
    await writePrivate(own, `${randomBytes(32).toString("hex")}\n`);
    // Fails when there is one already; what is there is whole, since a link is made at once.
    await link(own, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(own, { force: true });
  }
  const key = (await readIfThere(path))?.trim() ?? "";
  if (!/^[0-9a-f]{64}$/.test(key)) {
    throw new ConfigurationError(
      `${path} should hold 64 hex digits. Bring the right key back; a new one cannot read what is stored.`,
    );
  }
  return key;
}
