import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Write } from "../render/rendering.ts";

/**
 * Writes a file completely before sending any of it: a failure never sends a file that looks complete, and a slow
 * browser holds up no transaction. The file is unlinked before it is read, so none is left over.
 */
export async function writeWhole(make: (write: Write) => Promise<unknown>): Promise<Readable> {
  const folder = await mkdtemp(join(tmpdir(), "tallyhook-report-"));
  const file = await open(join(folder, "report"), "wx+", 0o600);
  try {
    // An open file is readable without its name.
    await rm(folder, { recursive: true });
    await make(async (chunk) => {
      const data = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      for (let from = 0; from < data.length;) {
        from += (await file.write(data, from)).bytesWritten;
      }
    });
    return file.createReadStream({ start: 0 });
  } catch (error) {
    await file.close();
    throw error;
  }
}
