import type { DestinationStream, Logger } from "pino";
import { pino, stdTimeFunctions } from "pino";
import { loggableError } from "./loggable-error.ts";
import { redacted, strikeOutSecrets } from "./secret-shapes.ts";

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
 * A log of JSON lines. Nobody is meant to log a secret; should it happen all the same, well-known keys are
 * replaced and what looks like a key, a signing secret or the password in a URL is struck out of the line. Errors go
 * under `err`, where they lose what they quote of people's data.
 */
export function createLog({ level, name, destination }: LogOptions): Log {
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (error: unknown) => loggableError(error) },
    redact: { paths: secretPaths, censor: redacted },
    hooks: { streamWrite: strikeOutSecrets },
  };
  // At a terminal that was closed pino's own writer would wait for ever; the stream reports it, and goes on.
  const stream = destination ?? (process.stdout.isTTY ? process.stdout : undefined);
  return stream === undefined ? pino(options) : pino(options, stream);
}

const secretKeys = [
  "password",
  "secret",
  "secrets",
  "apiKey",
  "api_key",
  "token",
  "authorization",
  "Authorization",
  "cookie",
  "signing_secret",
  "new_signing_secret",
  "encryptionKey",
  "security_key",
];
const secretPaths = secretKeys.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]);
