import { rm } from "node:fs/promises";
import { z } from "zod";
import type { Clock } from "../../platform/clock.ts";
import { ConfigurationError, UnreachableError } from "../../platform/errors.ts";
import { withExclusiveLock } from "../../platform/exclusive-lock.ts";
import {
  makePrivateDirectory,
  readIfThere,
  tryToWrite,
  unfinishedOf,
  writeWhole,
} from "../../platform/files.ts";
import type { Log } from "../../platform/log.ts";
import { errorCode } from "../../platform/postgres/errors.ts";
import { type StateDump, dumpFormat, dumpState, jsonPieces, stateDump } from "./state-dump.ts";
import type { State } from "./state.ts";

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
  await makePrivateDirectory(lock).catch((cause: unknown) => {
    throw cause instanceof UnreachableError ? cause : cannotBeWritten(path, cause);
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
    `The state file ${path} is in use by another sandbox. Stop that one, or name another file; "tallyhook start" takes ` +
      "another one with another TALLYHOOK_DATA_DIR.",
    { cause },
  );
}

/**
 * Takes up the state of an earlier run, if there is one. Throws `ConfigurationError` for a file that cannot be read or
 * taken up, `UnreachableError` for a link in its place.
 */
export async function readStateFile(
  path: string,
  takeUp: (dump: StateDump) => void,
): Promise<void> {
  try {
    const text = await readIfThere(path);
    if (text !== null) takeUp(stateOf(JSON.parse(text)));
  } catch (cause) {
    if (cause instanceof UnreachableError) throw cause;
    throw new ConfigurationError(
      `The state file ${path} ${whyNot(cause)}. Name another one, or remove it to start anew: what "tallyhook start" ` +
        'keeps goes with "tallyhook start --reset", together with its database.',
      { cause },
    );
  }
}

class OtherFormat extends Error {}

const anyFormat = z.looseObject({ format: z.int() });

function stateOf(value: unknown): StateDump {
  const { success, data } = anyFormat.safeParse(value);
  if (success && data.format !== dumpFormat) throw new OtherFormat(`format ${data.format}`);
  return stateDump.parse(value);
}

/** Texts of errors may quote the file, so only their kinds are told. */
function whyNot(cause: unknown): string {
  if (cause instanceof OtherFormat) {
    return `was written by another version of the sandbox (${cause.message}; this one has ${dumpFormat})`;
  }
  if (cause instanceof SyntaxError) return "is not whole, or no JSON";
  const code = errorCode(cause);
  return code === undefined ? "is not one of this sandbox" : `cannot be read (${code})`;
}

/** Removes a state. Its lock must be held, and stays. */
export async function removeStateFile(path: string): Promise<void> {
  for (const each of [path, unfinishedOf(path)]) await rm(each, { force: true });
}

/** Throws `ConfigurationError` where a state cannot be kept: better before the first change than at the end. */
export async function assertStatePlace(path: string): Promise<void> {
  try {
    await tryToWrite(path);
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

export interface StateFile {
  /** Writes what is not written yet, and stops. Throws `UnreachableError` where that cannot be done. */
  close(): Promise<void>;
}

/**
 * Keeps a state on disk: whole, at most once a second, when something changed. It is written beside the
 * file, synced and renamed over it, so that the file is always one moment's state, also after
 * `kill -9` or a power cut.
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
  /** Told once: it is tried again every second. */
  let isFailing = false;
  let writing: Promise<void> = Promise.resolve();

  async function writeIfChanged(): Promise<number> {
    const current = state();
    const revision = current.revision();
    if (written?.state === current && written.revision === revision) return 0;
    const startedMs = performance.now();
    await writeWhole(path, jsonPieces(dumpState(current, wallClock)));
    written = { state: current, revision };
    return performance.now() - startedMs;
  }

  function plan(waitMs: number): void {
    timer = setTimeout(() => {
      writing = writeIfChanged()
        .then((tookMs) => {
          if (isFailing) log.info({ path }, "the state of the sandbox is written again");
          isFailing = false;
          return tookMs;
        })
        .catch((error: unknown) => {
          if (!isFailing)
            log.error({ err: error, path }, "the state of the sandbox cannot be written");
          isFailing = true;
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
      await writeIfChanged().catch((cause: unknown) => {
        throw new UnreachableError(
          `The last state of the sandbox cannot be written to ${path} (${errorCode(cause) ?? "unknown error"}): what is ` +
            "there is the last one that could. Make room, or name a file elsewhere.",
          { cause },
        );
      });
    },
  };
}
