import { rm } from "node:fs/promises";
import { z } from "zod";
import type { Clock } from "../../../platform/clock.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { ConfigurationError, UnreachableError } from "../../../platform/errors.ts";
import { withExclusiveLock } from "../../../platform/exclusive-lock.ts";
import {
  makePrivateDirectory,
  readIfExists,
  assertWritable,
  temporaryName,
  writeAtomically,
} from "../../../platform/files.ts";
import type { Log } from "../../../platform/log.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { type StateDump, dumpFormat, dumpState, jsonPieces, stateDump } from "./state-dump.ts";
import type { State } from "./state.ts";

/** How soon a change is on disk, apart from the time that writing takes. */
const intervalMs = 1000;
/** A state that takes long to write is written less often, so that writing takes only a small share of the time. */
const restPerWrite = 4;

/**
 * Locks a state file against other sandboxes of this machine until the returned function is called, or the process
 * ends. Throws `ConfigurationError` if another sandbox holds the file, or if it cannot be locked.
 */
export async function holdStateFile(path: string): Promise<() => Promise<void>> {
  // The lock is on a directory that is never removed. If it were, two processes could each lock a directory of that
  // name.
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
    `The state file ${path} is in use by another sandbox. Stop that one, or name another file ` +
      `("${tallyhook("start")}": set another TALLYHOOK_DATA_DIR).`,
    { cause },
  );
}

/**
 * Reads the state of an earlier run, if there is one. Throws `ConfigurationError` for a file that cannot be read or
 * restored, `UnreachableError` for a link in its place.
 */
export async function readStateFile(path: string, takeUp: (dump: StateDump) => void): Promise<void> {
  try {
    const text = await readIfExists(path);
    if (text !== null) takeUp(stateOf(JSON.parse(text)));
  } catch (cause) {
    if (cause instanceof UnreachableError) throw cause;
    throw new ConfigurationError(
      `The state file ${path} ${whyNot(cause)}. Name another one, or remove it to begin with an empty sandbox. ` +
        `"${tallyhook("start --reset")}" removes the one that "${tallyhook("start")}" keeps, together with its ` +
        "database.",
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

/** The kind of an error only: its text may quote the file. */
function whyNot(cause: unknown): string {
  if (cause instanceof OtherFormat) {
    return `was written by another version of the sandbox (${cause.message}; this one has ${dumpFormat})`;
  }
  if (cause instanceof SyntaxError) return "is not whole, or no JSON";
  const code = errorCode(cause);
  return code === undefined ? "is not one of this sandbox" : `cannot be read (${code})`;
}

/** Removes a state file. The caller holds its lock, which stays. */
export async function removeStateFile(path: string): Promise<void> {
  for (const each of [path, temporaryName(path)]) await rm(each, { force: true });
}

/** Throws `ConfigurationError` where a state cannot be written, before the first change and not at the end. */
export async function assertStatePlace(path: string): Promise<void> {
  try {
    await assertWritable(path);
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
  /** Writes unsaved changes and stops. Throws `UnreachableError` if that fails. */
  close(): Promise<void>;
}

/**
 * Keeps a state on disk: the whole state, at most once a second, when something changed. It is written to a second
 * file, synced and renamed over it, so that the file always holds one moment's state, even after `kill -9` or a power
 * cut.
 */
export function keepStateFile(deps: { path: string; log: Log; wallClock: Clock; state: () => State }): StateFile {
  const { path, log, wallClock, state } = deps;
  /** A revision identifies a change of one state. Another state, as after a reset, counts from the start. */
  let written: { state: State; revision: string } | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  /** The failure is logged once; writing is tried again every second. */
  let isFailing = false;
  let writing: Promise<void> = Promise.resolve();

  async function writeIfChanged(): Promise<number> {
    const current = state();
    const revision = current.revision();
    if (written?.state === current && written.revision === revision) return 0;
    const startedMs = performance.now();
    await writeAtomically(path, jsonPieces(dumpState(current, wallClock)));
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
          if (!isFailing) log.error({ err: error, path }, "the state of the sandbox cannot be written");
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
          `The last state of the sandbox cannot be written to ${path} (${errorCode(cause) ?? "unknown error"}). The ` +
            "file has the state of the last successful write. Make room, or name a file elsewhere.",
          { cause },
        );
      });
    },
  };
}
