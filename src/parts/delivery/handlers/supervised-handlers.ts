import type { ServiceLocation } from "../../../app/answers.ts";
import { type ChildProcess, fork } from "node:child_process";
import { setPriority } from "node:os";
import { noteTroubles } from "../dispatch/handler-hosts.ts";
import { type RunningHandlers, superviseHandlers } from "./host/supervise.ts";
import { listHandlerFiles } from "./load-handlers.ts";
import { readableUntil } from "../../../core/mirror/changes/read-changes.ts";
import { runEvery } from "../../../platform/run-every.ts";
import { handlerFolders } from "./handler-folders.ts";
import { programEntry } from "../../../app/program-entry.ts";
import type { Runtime } from "../../../app/runtime.ts";

/** Together with a worker, it fits into the gigabyte of a container. */
const heapLimitMb = 256;
/** Where the CPU is short, applying events goes first. */
const niceness = 5;
/** A process that was silent for a minute has ended. */
const noteEveryMs = 10_000;

/**
 * Runs the merchant's handlers until the runtime ends, in a process of their own. Null where there are none. Does not
 * wait until they are loaded; those that begin "now" begin where the feed is when this resolves. No merchant's file is
 * loaded here. Throws `ConfigurationError` for a folder that cannot be read.
 */
export async function superviseOwnHandlers(
  runtime: Runtime,
  service?: ServiceLocation,
): Promise<RunningHandlers | null> {
  const { config, log, random } = runtime;
  const listFiles = async () => listHandlerFiles(await handlerFolders(config));
  if ((await listFiles()).length === 0) return null;
  const running = superviseHandlers({
    log,
    random,
    spawn: startHost,
    listFiles,
    start: {
      type: "start",
      parentPid: process.pid,
      databaseUrl: await runtime.databaseUrl(),
      service: service ?? null,
      now: await readableUntil(await runtime.db()),
    },
  });
  runtime.onClose(() => running.close());
  await noteOwnTroubles(runtime, running);
  return running;
}

/** Records processes and files that are down in the database until the runtime ends: alerts and pages read it there. */
async function noteOwnTroubles(runtime: Runtime, running: Pick<RunningHandlers, "troubles">): Promise<void> {
  const db = await runtime.db();
  const supervisor = `${process.pid}:${crypto.randomUUID()}`;
  let hasNoted = false;
  const note = async (troubles: ReturnType<typeof running.troubles>): Promise<void> => {
    if (troubles.length === 0 && !hasNoted) return;
    hasNoted = true;
    await noteTroubles(db, supervisor, troubles);
    hasNoted = troubles.length > 0;
  };
  const notes = runEvery({ log: runtime.log, name: "handlers" }, noteEveryMs, async () => {
    await note(running.troubles());
    return { more: false };
  });
  runtime.onClose(async () => {
    await notes.close();
    await note([]);
  });
}

function startHost(): ChildProcess {
  const child = fork(programEntry, ["handlers", "host"], {
    execArgv: [`--max-old-space-size=${heapLimitMb}`],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  try {
    if (child.pid !== undefined) setPriority(child.pid, niceness);
  } catch {
    // It may be gone, and not every system lets a process do so.
  }
  return child;
}
