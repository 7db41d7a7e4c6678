import { readFile } from "node:fs/promises";
import { UsageError } from "../platform/errors.ts";

/** A file that a command was given. Throws `UsageError`. */
export async function readInputFile(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(
      `${file} cannot be read (${code}). Name a file that is there and that this user may read.`,
      { cause },
    );
  }
}
