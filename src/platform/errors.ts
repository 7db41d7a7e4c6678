import { strikeOutSecrets } from "./redaction.ts";

/** Exit codes of the command line (`sysexits.h` where one fits); docs/operations.md says when each comes. */
export const exitCodes = {
  done: 0,
  /** A setting is wrong, or something cannot be reached. */
  configuration: 2,
  differs: 3,
  incomplete: 4,
  healed: 5,
  usage: 64,
  unexpected: 70,
  /** A second signal, which waits for nothing. */
  endedAtOnce: 130,
} as const;

/**
 * An error that a person is meant to read. Its message says what is wrong, where, and what to do about it;
 * the technical reason travels as `cause`. `exitCode` is what a command ends with when nothing catches it. Wherever the
 * message goes (a terminal, a run's record, an alert), it holds no secret, should somebody have quoted one.
 */
export class TallyhookError extends Error {
  readonly exitCode: number = exitCodes.unexpected;

  constructor(message: string, options?: { cause?: unknown }) {
    super(strikeOutSecrets(message), options);
    this.name = new.target.name;
  }
}

/** A setting is missing or wrong. The message names each bad variable, never the value of a secret. */
export class ConfigurationError extends TallyhookError {
  override readonly exitCode = exitCodes.configuration;
}

/** Something this program needs (a database, a server, a service) is not there or does not answer. */
export class UnreachableError extends TallyhookError {
  override readonly exitCode = exitCodes.configuration;
}

/** The command line was used wrongly. */
export class UsageError extends TallyhookError {
  override readonly exitCode = exitCodes.usage;
}
