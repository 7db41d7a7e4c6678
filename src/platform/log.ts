import type { DestinationStream, Logger } from "pino";
import { pino, stdTimeFunctions } from "pino";
import { createLogOutput } from "./log-output.ts";
import type { LogOutput } from "./log-output.ts";
import { redacted } from "./known-secrets.ts";
import { loggableError } from "./loggable-error.ts";
import { cutAt, strikeOutSecrets } from "./secret-shapes.ts";

export type Log = Logger;

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  level: LogLevel;
  /** Which process speaks: `receiver`, `worker`, … */
  name: string;
  /** Where lines go; standard output when left out. */
  destination?: DestinationStream;
}

/**
 * A log of JSON lines. Nobody is meant to log a secret; should it happen all the same, what stands under well-known keys
 * is replaced, and known secrets and what looks like one are struck out of every text and key, at any depth. Errors lose
 * what they quote of people's data. Whatever is logged, a line is bounded by `lineLimits`, and takes time in proportion
 * to what was given.
 */
export function createLog({ level, name, destination }: LogOptions): Log {
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: withLoggableErrors },
    // Also for children, whose fields do not pass through `formatters.log`.
    serializers: { err: (error: unknown) => loggableError(error) },
    hooks: { streamWrite: loggableLine },
  };
  return pino(options, destination ?? standardOutput());
}

let toStandardOutput: LogOutput | undefined;

/** A terminal that is closed is noticed, and survived, by the stream alone. All logs of a process share the other. */
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return process.stdout;
  toStandardOutput ??= createLogOutput(process.stdout.fd);
  return toStandardOutput;
}

/** What of a line is written (docs/operations.md). The rest is counted. */
export const lineLimits = { characters: 4_000, depth: 6, fields: 50, values: 500 } as const;

/** An error under any key: JSON would make of it what it carries beside its message. */
function withLoggableErrors(fields: Record<string, unknown>): Record<string, unknown> {
  const loggable = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((each) => loggableError(each)) : loggableError(value);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, loggable(value)]));
}

/** The line that is written in place of this one. The whole line, so that nothing of it goes round the rules. */
function loggableLine(line: string): string {
  try {
    const room = { values: lineLimits.values };
    return `${JSON.stringify(bounded(JSON.parse(line), { key: "", depth: 0, room }))}\n`;
  } catch {
    const msg = boundedText(line);
    return `${JSON.stringify({ level: "error", time: new Date().toISOString(), msg })}\n`;
  }
}

interface Place {
  key: string;
  depth: number;
  /** Shared by the whole line. */
  room: { values: number };
}

function bounded(value: unknown, { key, depth, room }: Place): unknown {
  if (value === null || typeof value === "boolean") return value;
  if (isSecretKey(key)) return redacted;
  if (typeof value === "string") return boundedText(value);
  if (typeof value !== "object") return value;
  if (depth > lineLimits.depth) return "[too deep]";
  const taken = (_: unknown, n: number): boolean => n < lineLimits.fields && room.values-- > 0;
  if (Array.isArray(value)) {
    const items = (value as unknown[]).filter(taken);
    const left = value.length - items.length;
    const kept = items.map((item) => bounded(item, { key, depth: depth + 1, room }));
    return left === 0 ? kept : [...kept, `[${left} more]`];
  }
  const all = Object.entries(value);
  const fields = all.filter(taken).map(([name, field]) => {
    return [boundedText(name), bounded(field, { key: name, depth: depth + 1, room })] as const;
  });
  const left = all.length - fields.length;
  return Object.fromEntries(left === 0 ? fields : [...fields, ["…", `[${left} more]`]]);
}

/** Cut after the secrets are struck out: half a secret has no shape. */
function boundedText(text: string): string {
  const struck = strikeOutSecrets(text);
  const over = struck.length - lineLimits.characters;
  return over <= 0 ? struck : `${cutAt(struck, lineLimits.characters)}… [${over} characters more]`;
}

/** However they are written: `api_key`, `apiKey`, `X-Api-Key`. Ids of secrets are none. */
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
