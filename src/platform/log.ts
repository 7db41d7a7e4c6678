import { write, writeSync } from "node:fs";
import type { DestinationStream, Logger } from "pino";
import { onDemand } from "./on-demand.ts";
import { errorCode } from "./postgres/errors.ts";
import { withoutControls } from "./readable-text.ts";
import { shortenedTo, redacted, redactSecrets } from "./redaction.ts";
import { traceFields } from "./tracing/tracing.ts";

export type Log = Logger;

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  level: LogLevel;
  /** The process that logs: `receiver`, `worker`, … */
  name: string;
  /** Receives the lines; standard output by default. */
  destination?: DestinationStream;
}

/**
 * A log of JSON lines. No code should log a secret. In case it does, values under well-known secret keys are replaced,
 * and known secrets and texts in the shape of one are removed from every text and key, at any depth. Errors lose the
 * parts that quote people's data. Every line is bounded by `lineLimits`, and costs time in proportion to its input. It
 * names the span in which it was written, if there is one.
 */
export function createLog({ level, name, destination }: LogOptions): Log {
  const { pino } = onDemand;
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: traceFields,
    formatters: { level: (label: string) => ({ level: label }), log: withLoggableErrors },
    // Also covers child loggers, whose fields do not pass through `formatters.log`.
    serializers: { err: (error: unknown) => loggableError(error) },
    hooks: { streamWrite: loggableLine },
  };
  return pino(options, destination ?? standardOutput());
}

let toStandardOutput: LogOutput | undefined;

/** On a terminal, Node's own stream, which survives the terminal's end. Else one output for all logs. */
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return process.stdout;
  toStandardOutput ??= createLogOutput(process.stdout.fd);
  return toStandardOutput;
}

/** The parts of a line that are written (docs/operations.md). What exceeds them is counted. */
export const lineLimits = { characters: 4_000, depth: 6, fields: 50, values: 500 } as const;

/** Reduces errors under any key: JSON would print all their fields, which may hold people's data. */
function withLoggableErrors(fields: Record<string, unknown>): Record<string, unknown> {
  const loggable = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((each) => loggableError(each)) : loggableError(value);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, loggable(value)]));
}

/** The line as it is written. Works on the whole line, so that no part of it escapes the rules. */
function loggableLine(line: string): string {
  try {
    const budget = { values: lineLimits.values };
    return `${JSON.stringify(bounded(JSON.parse(line), { key: "", depth: 0, budget }))}\n`;
  } catch {
    const msg = boundedText(line);
    return `${JSON.stringify({ level: "error", time: new Date().toISOString(), msg })}\n`;
  }
}

interface Place {
  key: string;
  depth: number;
  /** Values left, shared by the whole line. */
  budget: { values: number };
}

function bounded(value: unknown, { key, depth, budget }: Place): unknown {
  if (value === null || typeof value === "boolean") return value;
  if (isSecretKey(key)) return redacted;
  if (typeof value === "string") return boundedText(value);
  if (typeof value !== "object") return value;
  if (depth > lineLimits.depth) return "[too deep]";
  const taken = (_: unknown, n: number): boolean => n < lineLimits.fields && budget.values-- > 0;
  if (Array.isArray(value)) {
    const items = (value as unknown[]).filter(taken);
    const left = value.length - items.length;
    const kept = items.map((item) => bounded(item, { key, depth: depth + 1, budget }));
    return left === 0 ? kept : [...kept, `[${left} more]`];
  }
  const all = Object.entries(value);
  const fields = all.filter(taken).map(([name, field]) => {
    return [boundedText(name), bounded(field, { key: name, depth: depth + 1, budget })] as const;
  });
  const left = all.length - fields.length;
  return Object.fromEntries(left === 0 ? fields : [...fields, ["…", `[${left} more]`]]);
}

/** Secrets are removed before the cut: half a secret has no recognisable shape. */
function boundedText(text: string): string {
  const struck = redactSecrets(text);
  const over = struck.length - lineLimits.characters;
  return over <= 0 ? struck : `${shortenedTo(struck, lineLimits.characters)}… [${over} characters more]`;
}

/** In any spelling: `api_key`, `apiKey`, `X-Api-Key`. Ids of secrets are not secret. */
const secretEndings = [
  "password",
  "passwd",
  "secret",
  "secrets",
  "apikey",
  "token",
  "authorization",
  "cookie",
  "encryptionkey",
  "securitykey",
];

function isSecretKey(key: string): boolean {
  if (key.length > 100) return false;
  const name = key.toLowerCase().replaceAll(/[^a-z]/g, "");
  return secretEndings.some((ending) => name.endsWith(ending));
}

/**
 * The fields of an error that are safe to log. Any other may hold a Redis command with its password, or a row's values.
 */
const safeFields = [
  "code",
  "severity",
  "table",
  "column",
  "constraint",
  "routine",
  "syscall",
  "address",
  "port",
] as const;

/** Classes of SQLSTATE whose messages quote values: data, constraints, check options, errors raised by functions. */
const quotesValues = /^(22|23|44|P0)/;

const maxDepth = 5;
/** Counts an error and all its causes, at every depth. */
const maxErrors = 20;

/**
 * Reduces an error to the parts that a log may keep; anything else is returned unchanged. Drops messages of the
 * database that quote values, which may be personal. Keeps the first errors of an aggregate. The log itself bounds
 * lengths and removes secrets.
 */
function loggableError(error: unknown, depth = 0, budget = { errors: maxErrors }): unknown {
  try {
    return error instanceof Error ? fieldsOfError(error, depth, budget) : error;
  } catch {
    // A merchant's code may throw anything: a proxy, or an error whose fields throw.
    return "[an error that cannot be read]";
  }
}

function fieldsOfError(error: Error, depth: number, budget: { errors: number }): unknown {
  budget.errors--;
  const source = error as unknown as Record<string, unknown>;
  const safe = safeFields.flatMap((field) => (isPlain(source[field]) ? [[field, source[field]]] : []));
  const message = messageOf(error, source);
  const { stack = "" } = error;
  const mayNest = depth < maxDepth;
  const nested = (each: unknown): unknown =>
    budget.errors > 0 ? loggableError(each, depth + 1, budget) : "[more errors]";
  return {
    type: error.name,
    message,
    ...(Object.fromEntries(safe) as Record<string, unknown>),
    stack: `${error.name}: ${message}\n${stack.slice(Math.max(0, stack.search(/^ {4}at /m)))}`,
    ...(error.cause !== undefined && mayNest ? { cause: nested(error.cause) } : {}),
    ...(error instanceof AggregateError && mayNest ? { errors: error.errors.slice(0, maxErrors).map(nested) } : {}),
  };
}

const isPlain = (value: unknown): boolean => typeof value === "string" || typeof value === "number";

/** An error with a severity came from the database server. Knex puts the statement before its message. */
function messageOf({ message }: Error, { severity, code }: Record<string, unknown>): string {
  if (severity === undefined) return message;
  const name = `database error ${String(code)}`;
  if (quotesValues.test(String(code))) return name;
  const from = message.lastIndexOf(" - ");
  return `${name}: ${from < 0 ? message : message.slice(from + 3)}`;
}

/** The cause of a failure, in a few words without values, to be stored and shown. Never throws. */
export function safeReason(error: unknown): string {
  try {
    if (!(error instanceof Error)) return "unknown error";
    const { code, severity } = error as { code?: unknown; severity?: unknown };
    const reason = severity === undefined ? error.name : `database error ${String(code)}`;
    return withoutControls(reason);
  } catch {
    return "unknown error";
  }
}

/** The output of a log: pino calls `write`, and calls `flush` for `log.flush`. */
interface LogOutput {
  /** Never throws and never blocks, in any state of the reader or the disk. */
  write(line: string): void;
  /** Calls back once every line is written, or a second later. */
  flush(done: () => void): void;
}

/** The limit for lines that wait to be written. Lines beyond it are dropped and counted. */
const maxWaitingBytes = 4 * 1024 * 1024;
/** The wait after a failed write. */
const retryMs = 1_000;
const flushLimitMs = 1_000;
/** The wait before a write to a full pipe is tried again. */
const fullPipeMs = 50;

/**
 * Writes lines to a file descriptor, one write in flight. Webhooks matter more than log lines: a stuck reader, a full
 * disk or a closed pipe costs lines and a bounded amount of memory, and never delays the process or its end. pino's own
 * writer keeps every waiting line, ends the process at the first full disk, and then retries the rest endlessly, which
 * blocks every request and signal.
 */
function createLogOutput(fd: number): LogOutput {
  let lines: string[] = [];
  let waitingBytes = 0;
  let dropped = 0;
  let isClosed = false;
  /** The bytes being written, or waiting for a retry. */
  let current: Buffer = Buffer.alloc(0);
  let writingSinceMs: number | null = null;
  let retryTimer: NodeJS.Timeout | undefined;
  const flushing = new Set<() => void>();

  function take(): void {
    if (dropped > 0) {
      const msg = "log lines were dropped: they came faster than they could be written";
      lines.push(`${JSON.stringify({ level: "warn", time: new Date().toISOString(), leftOut: dropped, msg })}\n`);
      dropped = 0;
    }
    current = Buffer.from(lines.join(""));
    waitingBytes = current.length;
    lines = [];
  }

  function writeNext(): void {
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
        writeNext();
      } else if (errorCode(error) === "EPIPE") {
        // The reader is gone for good.
        isClosed = true;
        discardAll();
      } else if (errorCode(error) === "EAGAIN") {
        // Not `unref`: at the end of the process, a slow reader still gets all lines.
        retryTimer = setTimeout(retry, fullPipeMs);
      } else {
        retryTimer = setTimeout(retry, retryMs).unref();
      }
    });
  }

  function retry(): void {
    retryTimer = undefined;
    writeNext();
  }

  function wrote(bytes: number): void {
    current = current.subarray(bytes);
    waitingBytes -= bytes;
  }

  function discardAll(): void {
    lines = [];
    current = Buffer.alloc(0);
    waitingBytes = 0;
    for (const done of flushing) done();
  }

  /** The last attempt, when the process exits. If the write in flight has not returned yet, this one would hang too. */
  function writeRest(): void {
    if (isClosed) return;
    if (writingSinceMs !== null && performance.now() - writingSinceMs > flushLimitMs) return;
    if (writingSinceMs !== null) {
      // A separate thread completes the write in flight before the process ends, nearly always during this pause. So
      // lines keep their order.
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
        dropped++;
        return;
      }
      waitingBytes += bytes;
      lines.push(line);
      if (writingSinceMs === null && retryTimer === undefined) writeNext();
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

/** Blocks everything but other threads: timers no longer fire while a process exits. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
