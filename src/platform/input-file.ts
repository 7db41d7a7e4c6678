import { createReadStream } from "node:fs";
import { UsageError } from "./errors.ts";

/** The longest body that a receiver takes (WEBHOOK_MAX_BYTES); nothing else that a command reads is longer. */
const maxBytes = 64 * 1024 * 1024;

/** A file that a command was given, or a pipe. Throws `UsageError`, also for a device that never ends. */
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
    throw new UsageError(
      `${file} cannot be read (${code}). Name a file that is there and that this user may read.`,
      { cause },
    );
  }
  if (bytes > maxBytes) {
    throw new UsageError(`${file} is longer than ${maxBytes} bytes. Name another file.`);
  }
  return Buffer.concat(chunks);
}
