import { redactSecrets } from "./redaction.ts";

/** Exit codes of the command line (`sysexits.h` where one fits); docs/operations.md explains them. */
export const exitCodes = {
  done: 0,
  /** A setting is wrong, or something cannot be reached. */
  configuration: 2,
  /** The check ran and found a difference. */
  differs: 3,
  incomplete: 4,
  healed: 5,
  usage: 64,
  unexpected: 70,
  /** After a second signal, which ends the process without waiting. */
  endedAtOnce: 130,
} as const;

/**
 * An error meant for people. Its message names what is wrong, where, and what to do about it; the technical reason is
 * its `cause`. `exitCode` is the exit code of a command when nothing catches the error. The message may reach a
 * terminal, a run's record or an alert, so secrets quoted in it are removed.
 */
export class TallyhookError extends Error {
  readonly exitCode: number = exitCodes.unexpected;

  constructor(message: string, options?: { cause?: unknown }) {
    super(redactSecrets(message), options);
    this.name = new.target.name;
  }
}

/** A setting is missing or wrong. The message names each bad variable, never the value of a secret. */
export class ConfigurationError extends TallyhookError {
  override readonly exitCode = exitCodes.configuration;
}

/** Something this program needs (a database, a server, a service) is missing or does not answer. */
export class UnreachableError extends TallyhookError {
  override readonly exitCode = exitCodes.configuration;
}

/** The command line was used wrongly. */
export class UsageError extends TallyhookError {
  override readonly exitCode = exitCodes.usage;
}
