import { write, writeSync } from "node:fs";
import { errorCode } from "./postgres-errors.ts";

/** Where the lines of a log go: pino calls `write`, and `flush` by way of `log.flush`. */
export interface LogOutput {
  /** Never throws and never waits, whatever has become of the reader or the disk. */
  write(line: string): void;
  /** Calls back once every line is written, or a second later. */
  flush(done: () => void): void;
}

export interface LogOutputOptions {
  /** Of lines that wait to be written; a line that finds no room is left out and counted. */
  maxWaitingBytes?: number;
  /** After a write that failed. */
  retryMs?: number;
}

const flushLimitMs = 1_000;
/** A pipe that is full for the moment is tried again after so long. */
const fullPipeMs = 50;

/**
 * Writes lines to a file descriptor, one write in flight. Webhooks are worth more than lines: a reader that stands still,
 * a full disk or a closed pipe costs lines and a bounded amount of memory, and never holds up the process, nor its end.
 * pino's own writer keeps everything that waits, ends the process at the first full disk, and then tries for ever to
 * write the rest, deaf to every request and signal.
 */
export function createLogOutput(
  fd: number,
  { maxWaitingBytes = 4 * 1024 * 1024, retryMs = 1_000 }: LogOutputOptions = {},
): LogOutput {
  let lines: string[] = [];
  let waitingBytes = 0;
  let leftOut = 0;
  let isClosed = false;
  /** What is being written, or could not be and is tried again. */
  let current: Buffer = Buffer.alloc(0);
  let writingSinceMs: number | null = null;
  let retryTimer: NodeJS.Timeout | undefined;
  const flushing = new Set<() => void>();

  function take(): void {
    if (leftOut > 0) {
      const msg = "lines of the log were left out: they were written faster than they were taken";
      lines.push(
        `${JSON.stringify({ level: "warn", time: new Date().toISOString(), leftOut, msg })}\n`,
      );
      leftOut = 0;
    }
    current = Buffer.from(lines.join(""));
    waitingBytes = current.length;
    lines = [];
  }

  function writeOn(): void {
    if (current.length === 0) take();
    if (current.length === 0) {
      for (const done of flushing) done();
      return;
    }
    writingSinceMs = performance.now();
    write(fd, current, 0, current.length, null, (error, written) => {
      writingSinceMs = null;
      if (error === null) {
        wrote(written);
        writeOn();
      } else if (errorCode(error) === "EPIPE") {
        // Nobody will ever read again.
        isClosed = true;
        forget();
      } else if (errorCode(error) === "EAGAIN") {
        // Whoever reads slowly gets all of it, for as long as nobody ends the process.
        retryTimer = setTimeout(retry, fullPipeMs);
      } else {
        retryTimer = setTimeout(retry, retryMs).unref();
      }
    });
  }

  function retry(): void {
    retryTimer = undefined;
    writeOn();
  }

  function wrote(bytes: number): void {
    current = current.subarray(bytes);
    waitingBytes -= bytes;
  }

  function forget(): void {
    lines = [];
    current = Buffer.alloc(0);
    waitingBytes = 0;
    for (const done of flushing) done();
  }

  /** The last chance. A write that has not come back by now would hold up this one, too. */
  function writeRest(): void {
    if (isClosed) return;
    if (writingSinceMs !== null && performance.now() - writingSinceMs > flushLimitMs) return;
    if (writingSinceMs !== null) {
      // What is in flight is written by a thread of its own before the process ends: nearly always in this pause, so
      // that lines stay in their order.
      current = Buffer.alloc(0);
      pause(fullPipeMs);
    }
    const untilMs = performance.now() + flushLimitMs;
    for (;;) {
      if (current.length === 0) take();
      if (current.length === 0) return;
      try {
        wrote(writeSync(fd, current));
      } catch (error) {
        if (errorCode(error) !== "EAGAIN" || performance.now() > untilMs) return;
        pause(fullPipeMs);
      }
    }
  }

  process.once("exit", writeRest);
  return {
    write(line) {
      if (isClosed) return;
      const bytes = Buffer.byteLength(line);
      if (waitingBytes + bytes > maxWaitingBytes) {
        leftOut++;
        return;
      }
      waitingBytes += bytes;
      lines.push(line);
      if (writingSinceMs === null && retryTimer === undefined) writeOn();
    },
    flush(done) {
      if (waitingBytes === 0 || isClosed) return done();
      const finish = (): void => {
        clearTimeout(timer);
        flushing.delete(finish);
        done();
      };
      const timer = setTimeout(finish, flushLimitMs);
      flushing.add(finish);
    },
  };
}

/** Stops everything but other threads: at the end of the process no timer comes any more. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
