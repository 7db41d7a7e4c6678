import { createWriteStream } from "node:fs";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import type { Clock } from "../../platform/clock.ts";
import { ConfigurationError, UnreachableError } from "../../platform/errors.ts";
import { withExclusiveLock } from "../../platform/exclusive-lock.ts";
import type { Log } from "../../platform/log.ts";
import type { State } from "../state.ts";
import { dumpState } from "./dump-state.ts";
import { jsonPieces } from "./json-text.ts";
import type { StateDump } from "./restore-state.ts";
import { stateDump } from "./restore-state.ts";

/** A change is on disk after this, plus the time that writing takes. */
const intervalMs = 1000;
/** A state that takes long to write is written less often: writing takes at most this share of the time. */
const restPerWrite = 4;

/**
 * Keeps other sandboxes of this machine off a state file until the function that it gives back is called, or the process
 * ends. Throws `ConfigurationError` where another one has the file, or where it cannot be kept.
 */
export async function holdStateFile(path: string): Promise<() => Promise<void>> {
  // The lock is that of a directory, which stays: were it removed, two processes could each hold one of that name.
  const lock = `${path}.lock`;
  await mkdir(lock, { mode: 0o700 }).catch((cause: unknown) => {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) {
      throw cannotBeWritten(path, cause);
    }
  });
  return new Promise((resolve, reject) => {
    const held = withExclusiveLock(
      lock,
      () =>
        new Promise<void>((release) => {
          resolve(async () => {
            release();
            await held;
          });
        }),
      { timeoutMs: 0 },
    );
    held.catch((cause: unknown) => {
      reject(cause instanceof UnreachableError ? isInUse(path, cause) : (cause as Error));
    });
  });
}

function isInUse(path: string, cause: unknown): ConfigurationError {
  return new ConfigurationError(
    `The state file ${path} is in use by another sandbox. Stop that one, or name another file.`,
    { cause },
  );
}

/** Takes up the state of an earlier run, if there is one. Throws `ConfigurationError` for a file that cannot be read or taken up. */
export async function readStateFile(
  path: string,
  takeUp: (dump: StateDump) => void,
): Promise<void> {
  try {
    takeUp(stateDump.parse(JSON.parse(await readFile(path, "utf8"))));
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    throw new ConfigurationError(
      `The state file ${path} cannot be read, or is not one of this sandbox. Name another one, or remove it to start anew.`,
      { cause },
    );
  }
}

/** Throws `ConfigurationError` where a state cannot be kept: better before the first change than at the end. */
export async function assertStatePlace(path: string): Promise<void> {
  const partial = partialOf(path);
  try {
    await (await open(partial, "w", 0o600)).close();
    await rm(partial);
  } catch (cause) {
    throw cannotBeWritten(path, cause);
  }
}

function cannotBeWritten(path: string, cause: unknown): ConfigurationError {
  return new ConfigurationError(
    `The state file ${path} cannot be written. Name one in a directory that exists and that this user may write to.`,
    { cause },
  );
}

function partialOf(path: string): string {
  return `${path}.partial`;
}

export interface StateFile {
  /** Writes what is not written yet, and stops. */
  close(): Promise<void>;
}

/**
 * Keeps a state on disk: whole, at most once a second, when something changed. It is written beside the file, synced and renamed over
 * it, so that the file is always one moment's state, also after `kill -9` or a power cut.
 */
export function keepStateFile(deps: {
  path: string;
  log: Log;
  wallClock: Clock;
  state: () => State;
}): StateFile {
  const { path, log, wallClock, state } = deps;
  /** Revisions of one state tell its changes apart; another state, as after a reset, counts anew. */
  let written: { state: State; revision: string } | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let writing: Promise<void> = Promise.resolve();

  async function writeIfChanged(): Promise<number> {
    const current = state();
    const revision = current.revision();
    if (written?.state === current && written.revision === revision) return 0;
    const startedMs = performance.now();
    const partial = partialOf(path);
    const pieces = Readable.from(jsonPieces(dumpState(current, wallClock)));
    await pipeline(pieces, createWriteStream(partial, { mode: 0o600 }));
    const file = await open(partial, "r+");
    await file.sync();
    await file.close();
    await rename(partial, path);
    written = { state: current, revision };
    return performance.now() - startedMs;
  }

  function plan(waitMs: number): void {
    timer = setTimeout(() => {
      writing = writeIfChanged()
        .catch((error: unknown) => {
          log.error({ err: error, path }, "the state of the sandbox could not be written");
          return 0;
        })
        .then((tookMs) => {
          if (!isClosed) plan(Math.max(intervalMs, tookMs * restPerWrite));
        });
    }, waitMs);
  }

  plan(intervalMs);
  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await writing;
      await writeIfChanged();
    },
  };
}
