import { once } from "node:events";
import { open, rename, rm, writeFile } from "node:fs/promises";
import { TallyhookError } from "../platform/errors.ts";
import { aboutLines } from "../reports/about.ts";
import type { About } from "../reports/about.ts";

/** Where a report goes: standard output, or a file that is there when it is whole, and not before. */
export interface ReportOutput {
  write(chunk: string | Uint8Array): Promise<void>;
  /**
   * Ends it. `beside`: what its format has no place for goes to `<file>.about.json`, or to standard error, so that the
   * rows themselves can be imported as they are.
   */
  keep(beside: About | null, stderr: NodeJS.WritableStream): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
}

export async function openOutput(
  stdout: NodeJS.WritableStream,
  path: string | undefined,
): Promise<ReportOutput> {
  return path === undefined ? toStream(stdout) : toFile(path);
}

function toStream(stdout: NodeJS.WritableStream): ReportOutput {
  return {
    async write(chunk) {
      if (!stdout.write(chunk)) await once(stdout, "drain");
    },
    async keep(beside, stderr) {
      if (beside === null) return;
      for (const [label, value] of aboutLines(beside)) stderr.write(`${label}: ${value}\n`);
    },
    discard: () => Promise.resolve(),
  };
}

async function toFile(path: string): Promise<ReportOutput> {
  const unfinished = `${path}.unfinished`;
  const file = await open(unfinished, "w").catch((cause: unknown) => {
    throw new TallyhookError(`${path} cannot be written. Name a file in a folder that exists.`, {
      cause,
    });
  });
  return {
    async write(chunk) {
      await file.writeFile(chunk);
    },
    async keep(beside) {
      await file.close();
      if (beside !== null) {
        await writeFile(`${path}.about.json`, `${JSON.stringify(beside, null, 2)}\n`);
      }
      await rename(unfinished, path);
    },
    async discard() {
      await file.close();
      await rm(unfinished, { force: true });
    },
  };
}
