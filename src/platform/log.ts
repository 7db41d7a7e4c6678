import type { DestinationStream, Logger } from "pino";
import { pino, stdTimeFunctions } from "pino";

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
 * replaced and what looks like a key, a signing secret or the password in a URL is struck out of the line.
 */
export function createLog({ level, name, destination }: LogOptions): Log {
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretPaths, censor: redacted },
    hooks: { streamWrite: strikeOutSecrets },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

const redacted = "[redacted]";

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

/** Shapes of secrets: service keys, signing secrets (spec: Authentication), and user:password@ in URLs. */
function strikeOutSecrets(line: string): string {
  return line
    .replace(/\bsvc_(live|test)_sk_[\w-]+/g, `svc_$1_sk_${redacted}`)
    .replace(/\bwhsec_[\w+/=-]+/g, `whsec_${redacted}`)
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:@/"]*):[^\s@"]+@/gi, `$1:${redacted}@`);
}
