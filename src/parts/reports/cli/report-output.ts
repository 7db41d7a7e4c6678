import { once } from "node:events";
import { open, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { UnreachableError, UsageError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { type ReportFacts, factLines } from "../base/report-facts.ts";

export interface ReportOutput {
  write(chunk: string | Uint8Array): Promise<void>;
  /**
   * Completes the output. `beside`: the facts, for a format that has no place for them. They go to `<file>.about.json`,
   * or to standard error, so that the rows can be imported as they are.
   */
  keep(beside: ReportFacts | null, stderr: NodeJS.WritableStream): Promise<void>;
  /** Removes the written part. */
  discard(): Promise<void>;
}

/** Throws `UsageError` if the file cannot be created, before anything is written. */
export async function openOutput(stdout: NodeJS.WritableStream, path: string | undefined): Promise<ReportOutput> {
  return path === undefined ? toStream(stdout) : toFile(path);
}

function toStream(stdout: NodeJS.WritableStream): ReportOutput {
  return {
    async write(chunk) {
      if (!stdout.write(chunk)) await once(stdout, "drain");
    },
    async keep(beside, stderr) {
      if (beside === null) return;
      for (const [label, value] of factLines(beside)) stderr.write(`${label}: ${value}\n`);
    },
    discard: () => Promise.resolve(),
  };
}

/** Writes to a temporary file and renames it at the end, so that the path never shows an incomplete report. */
async function toFile(path: string): Promise<ReportOutput> {
  const place = await placeOf(path);
  const unfinished = `${place}.unfinished`;
  const file = await open(unfinished, "w").catch((cause: unknown) => {
    throw new UsageError(
      `${path} cannot be written (${errorCode(cause) ?? "unknown error"}). Name a file in a folder that exists and that ` +
        "this user may write to.",
      { cause },
    );
  });
  const written = <T>(work: Promise<T>): Promise<T> =>
    work.catch((cause: unknown) => {
      throw new UnreachableError(
        `${path} cannot be written to its end (${errorCode(cause) ?? "unknown error"}), so nothing was kept. Make room ` +
          "there, or name another file.",
        { cause },
      );
    });
  return {
    write: (chunk) => written(file.writeFile(chunk)),
    keep: (beside: ReportFacts | null) =>
      written(
        (async () => {
          await file.close();
          if (beside !== null) {
            await writeFile(`${place}.about.json`, `${JSON.stringify(beside, null, 2)}\n`);
          }
          await rename(unfinished, place);
        })(),
      ),
    async discard() {
      await file.close().catch(() => {});
      await rm(unfinished, { force: true });
    },
  };
}

/** The target of a link. Throws for a folder, a device or a pipe, which a file must not replace. */
async function placeOf(path: string): Promise<string> {
  const place = await realpath(path).catch(() => path);
  const found = await stat(place).catch(() => null);
  if (found === null || found.isFile()) return place;
  throw new UsageError(
    found.isDirectory()
      ? `${path} is a folder. Name a file in it.`
      : `${path} is not a regular file. Name one, or leave out --out to write to standard output.`,
  );
}
