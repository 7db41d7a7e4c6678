import { errorCode } from "../platform/postgres-errors.ts";

/** The two streams that a command prints to, with somebody who hears of their errors. */
export interface StandardOutput {
  /** Resolves when all that was printed is out of this process, however slowly it is read, or cannot be taken any more. */
  flush(): Promise<void>;
  /** Why what was printed is not whole; null where it is, and where its reader wanted no more. */
  problem(): string | null;
  /** True once the terminal that was printed to is known to be closed. */
  isTerminalGone(): boolean;
  /** True for the error of a write to standard output, which a command may also meet while it waits for room. */
  isItsError(error: unknown): boolean;
}

/**
 * Hears the errors of both streams, which without a listener end the process on the spot and leave behind what it was
 * to close. A reader that has seen enough (`| head`) is no failure, a full disk is; nothing that befalls standard error is.
 */
export function guardStandardOutput(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
): StandardOutput {
  const errors = new Set<unknown>();
  // A terminal that was closed answers EIO, which of a disk is a failure.
  const isClosedTerminal = (code: string | undefined) => code === "EIO" && stdout.isTTY;
  const isGone = (code: string | undefined) => code === "EPIPE" || isClosedTerminal(code);
  stdout.on("error", (error) => errors.add(error));
  stderr.on("error", () => {});
  return {
    flush: async () => {
      await Promise.all([stdout, stderr].map(allTaken));
    },
    problem: () => {
      const failed = [...errors].map(errorCode).filter((code) => !isGone(code));
      if (failed.length === 0) return null;
      const cause = failed[0] === "ENOSPC" ? "the disk is full" : (failed[0] ?? "unknown error");
      return `Standard output cannot be written (${cause}): what was printed is not whole. Make room, or print elsewhere.`;
    },
    isTerminalGone: () => [...errors].map(errorCode).some(isClosedTerminal),
    isItsError: (error) => errors.has(error),
  };
}

/** Writes are taken in their order: once nothing is taken, so is all that came before it. */
const allTaken = (stream: NodeJS.WritableStream): Promise<void> =>
  new Promise((resolve) => void stream.write("", () => resolve()));
