import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import { tallyhook } from "../../../../platform/command-line.ts";
import { UsageError, exitCodes } from "../../../../platform/errors.ts";
import { type Log, safeReason } from "../../../../platform/log.ts";
import { counted } from "../../../../platform/readable-text.ts";
import type { RateLimitedWarnings } from "../../../../platform/rate-limited-warnings.ts";
import type { Handler } from "../../dispatch/define-handler.ts";
import type { loadFiles } from "../load-handlers.ts";
import type { RunningDispatch } from "../../dispatch/start-dispatch.ts";
import { type FromHost, type HostStart, beatMs, toHost } from "./messages.ts";

/** The host's end of the channel to its supervisor. */
export interface HostChannel {
  /** The first message. */
  readonly start: Promise<HostStart>;
  /** The files to run, received after the host reported the loaded ones. */
  readonly run: Promise<string[]>;
  readonly stop: Promise<void>;
  /** Resolves when it was sent; also when the supervisor is gone. */
  tell(message: FromHost): Promise<void>;
  /** Lets the process end: the channel no longer keeps it. */
  release(): void;
}

/**
 * Opens the channel of this process, which ends immediately when its supervisor is gone: the next supervisor repeats
 * the interrupted runs. Throws `UsageError` where no supervisor has started it.
 */
export function openHostChannel(): HostChannel {
  if (process.send === undefined) {
    throw new UsageError(
      `This is a part of "${tallyhook("worker")}" and "${tallyhook("handlers run")}", which start it themselves.`,
    );
  }
  process.on("disconnect", () => process.exit(exitCodes.endedAtOnce));
  let [onStart, onRun, onStop]: [(start: HostStart) => void, (files: string[]) => void, () => void] = [
    () => {},
    () => {},
    () => {},
  ];
  const run = new Promise<string[]>((resolve) => (onRun = resolve));
  const start = new Promise<HostStart>((resolve) => (onStart = resolve));
  const stop = new Promise<void>((resolve) => (onStop = resolve));
  process.on("message", (raw) => {
    const { success, data: message } = toHost.safeParse(raw);
    // Silence would be taken for a file that never ends loading.
    if (!success) throw new TypeError("the supervisor has sent what is no message of this version");
    if (message.type === "stop") return onStop();
    if (message.type === "run") return onRun(message.files);
    endWithParent(message.parentPid);
    onStart(message);
  });
  return {
    start,
    run,
    stop,
    tell: (message) =>
      new Promise((resolve) => {
        if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
        else resolve();
      }),
    release: () => process.channel?.unref(),
  };
}

/**
 * A handler that never releases the event loop keeps this process from noticing that its supervisor was killed. A
 * thread notices it.
 */
function endWithParent(parentPid: number): void {
  const watch = `
    const { workerData } = require("node:worker_threads");
    setInterval(() => {
      if (process.ppid !== workerData) process.kill(process.pid, "SIGKILL");
    }, 1_000);`;
  new Worker(watch, { eval: true, workerData: parentPid, execArgv: [] }).unref();
}

export interface HostDeps {
  log: Log;
  channel: HostChannel;
  warnRateLimited: RateLimitedWarnings;
  load(onFile: (file: string) => void): ReturnType<typeof loadFiles>;
  /** Runs them until they are closed, which the caller does. */
  run(handlers: Handler[], onBegin: (handler: string) => void): Promise<RunningDispatch>;
}

/** More calls that outlast their deadlines keep more memory and connections than a new process costs. */
const mostOverdue = 100;
/** After an uncaught exception the process cannot be trusted for longer; other runs often end within this time. */
const graceMs = 5_000;

/**
 * Runs handlers in this process, until the supervisor stops it or it has to end itself. No merchant's file is loaded
 * earlier, so that an import's side effects are limited to the host.
 */
export async function runHost(deps: HostDeps): Promise<void> {
  const { log, channel } = deps;
  let running = (): string[] => [];
  const { ended, end } = createEnd(deps);
  watchProcess(deps, { running: () => running(), end });

  const loaded = await Promise.race([loadAndTell(deps), ended.then(() => null)]);
  if (loaded === null) return;
  const told = new Set<string>();
  const dispatch = await deps.run(loaded, (handler) => {
    if (told.has(handler)) return;
    told.add(handler);
    void channel.tell({ type: "began", handler });
  });
  ({ running } = dispatch);
  const beats = setInterval(() => {
    const inProgress = running();
    told.clear();
    for (const handler of inProgress) told.add(handler);
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    const sinceProgressMs = dispatch.sinceProgressMs();
    void channel.tell({
      type: "beat",
      running: inProgress,
      sinceProgressMs,
      heapShare: used / limit,
    });
    const overdue = dispatch.overdue();
    if (overdue.length > mostOverdue) end(overdueText(overdue));
  }, beatMs);
  await ended;
  log.info({ handlers: running() }, "the handlers stop");
  await dispatch.close();
  clearInterval(beats);
}

/** `end` begins the end of this process: why it ends itself, or null where the supervisor stops it. */
function createEnd({ channel }: HostDeps): { ended: Promise<void>; end(why: string | null): void } {
  let resolve: (why: string | null) => void = () => {};
  const asked = new Promise<string | null>((begin) => (resolve = begin));
  const ended = asked.then(async (why) => {
    if (why === null) return;
    process.exitCode = exitCodes.unexpected;
    await channel.tell({ type: "ending", why });
  });
  return { ended, end: resolve };
}

/** The handlers that this host runs. Null: none, and the supervisor was notified. */
async function loadAndTell({ channel, load }: HostDeps): Promise<Handler[] | null> {
  const { loaded, problems } = await load((file) => void channel.tell({ type: "loading", file }));
  for (const { file, message } of problems) {
    await channel.tell({ type: "problem", file, message: message.slice(0, 10_000) });
  }
  const handlers = loaded.map(({ file, handler: { name, deadlineMs } }) => ({
    file,
    name,
    deadlineMs,
  }));
  await channel.tell({ type: "loaded", handlers });
  const run = new Set(await channel.run);
  if (run.size === 0) return null;
  return loaded.flatMap(({ file, handler }) => (run.has(file) ? [handler] : []));
}

function watchProcess(
  { channel, warnRateLimited }: HostDeps,
  { running, end }: { running: () => string[]; end: (why: string | null) => void },
): void {
  void channel.stop.then(() => end(null));
  // A terminal's signals reach the supervisor as well, which then decides.
  for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  process.on("SIGTERM", () => end("it was asked to end by SIGTERM"));
  process.on("unhandledRejection", (err) => {
    warnRateLimited(leaked, { err, reason: safeReason(err), handlers: running() });
  });
  process.on("uncaughtException", (err) => {
    warnRateLimited(uncaught, { err, reason: safeReason(err), handlers: running() });
    setTimeout(() => process.exit(exitCodes.unexpected), graceMs).unref();
    end(`an exception was not caught (${safeReason(err)})`);
  });
}

const leaked = "a handler leaked a promise that was rejected: await it, or catch what it throws. The handlers go on";
const uncaught =
  "a handler threw where the error could not be caught, as in a callback. Its process ends as soon as others have " +
  "ended";

function overdueText(handlers: readonly string[]): string {
  const names = [...new Set(handlers)];
  return (
    `${counted(handlers.length, "call")} of ${names.join(", ")} went on after their deadline, and more than ` +
    `${mostOverdue} are not kept: pass signal to what they wait for`
  );
}
