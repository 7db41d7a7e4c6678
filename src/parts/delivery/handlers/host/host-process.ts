import type { ChildProcess } from "node:child_process";
import type { Log } from "../../../../platform/log.ts";
import { errorCode } from "../../../../platform/postgres/errors.ts";
import { hostEndText } from "./host-end.ts";
import { type FileProblem, problemsText } from "../load-handlers.ts";
import { type HostStart, type LoadedHandler, type ToHost, beatMs, fromHost } from "./messages.ts";

export interface HostProcessDeps {
  log: Log;
  /** Starts the process, with a channel. Called once for each. */
  spawn(): ChildProcess;
  start: HostStart;
  /** Selects loaded handlers that must not run, with the reason. */
  refuse(handlers: readonly LoadedHandler[]): FileProblem[];
}

export interface HostLimits {
  /** The time limit from the start to the first message, then for each file, and then to the first sign of life. */
  loadMs: number;
  /** After this time without a sign of life the host counts as blocked. */
  silentMs: number;
  /** Beyond the longest deadline: a host that is blocked or does not stop is killed. */
  marginMs: number;
}

export interface EndedHost {
  why: string;
  /** The handlers that had calls in progress then, or shortly before. */
  running: string[];
  /** The files that may have ended it: the one that it was loading, or those of the running handlers. */
  suspects: string[];
  /** It was killed because loading took too long. */
  wasLate: boolean;
  /** Since it had loaded them; 0 where it had not. */
  ranMs: number;
}

export interface HostContent {
  handlers: LoadedHandler[];
  problems: FileProblem[];
}

export interface HostProcess {
  /** Resolves when it has loaded its files; to null if it ended before. */
  readonly ready: Promise<HostContent | null>;
  readonly ended: Promise<EndedHost>;
  /** Milliseconds since it began to run handlers; null while it does not. */
  ranMs(): number | null;
  /** Milliseconds since its dispatch last showed that it does not hang. */
  sinceProgressMs(): number;
  /** Lets it complete its runs until their deadlines, and kills it when it takes longer. Idempotent. */
  stop(): void;
}

/** A round of its dispatch fails far sooner when the database is down. */
const stalledMs = 60_000;

/** Starts a host, watches it and kills it where it hangs. It is killed with this process, too. */
export function startHostProcess(
  { log, spawn, start, refuse }: HostProcessDeps,
  { loadMs, silentMs, marginMs }: HostLimits,
): HostProcess {
  let child: ChildProcess;
  try {
    child = spawn();
  } catch (error) {
    return neverStarted(error);
  }
  let readyMs: number | null = null;
  let longestDeadlineMs: number | null = null;
  let loading: string | null = null;
  const problems: FileProblem[] = [];
  let content: HostContent | null = null;
  let known: string | null = null;
  let running = new Set<string>();
  let heapShare = 0;
  let lastProgressMs = performance.now();
  let [isStopping, wasLate] = [false, false];

  const kill = (why: string | null): void => {
    known ??= why;
    child.kill("SIGKILL");
  };
  const killWithThis = () => kill(null);
  process.once("exit", killWithThis);

  const tell = (message: ToHost): void => {
    // A host that cannot receive it has ended, or is ending.
    if (child.connected) child.send(message, () => {});
  };

  const loadTimer = setTimeout(() => {
    wasLate = true;
    const limit = `${Math.round(loadMs / 1_000)} s`;
    kill(
      loading === null
        ? `it said nothing for ${limit} after its start`
        : `it took longer than ${limit}. What a file does when it is imported must end: move the rest into run()`,
    );
  }, loadMs);

  const silence = watchSilence((missedMs) => {
    if (longestDeadlineMs !== null && missedMs > longestDeadlineMs + marginMs) {
      kill(`a handler blocked it for ${Math.round(missedMs / 1_000)} s, longer than any deadline`);
    }
  });

  function watchSilence(onSilent: (missedMs: number) => void) {
    let missedMs = 0;
    let isTold = false;
    let lastMs = 0;
    let timer: NodeJS.Timeout | undefined;
    const look = (): void => {
      const nowMs = performance.now();
      // If this process was itself held up, messages from that time are still unread.
      missedMs += Math.min(nowMs - lastMs, 2 * beatMs);
      lastMs = nowMs;
      if (missedMs > silentMs && !isTold) {
        isTold = true;
        log.warn({ handlers: [...running] }, blocked);
      }
      onSilent(missedMs);
    };
    return {
      begin() {
        if (timer !== undefined) return;
        lastMs = performance.now();
        timer = setInterval(look, beatMs);
      },
      heard() {
        if (isTold) {
          log.warn({ handlers: [...running], blockedMs: Math.round(missedMs) }, goesOn);
        }
        isTold = false;
        missedMs = 0;
      },
      end: () => clearInterval(timer),
    };
  }

  let isStalled = false;
  function noteProgress(sinceProgressMs: number): void {
    const was = isStalled;
    isStalled = sinceProgressMs > stalledMs;
    if (isStalled && !was) log.warn({ sinceProgressMs: Math.round(sinceProgressMs) }, stalled);
  }

  let becomesReady: (content: HostContent | null) => void = () => {};
  const ready = new Promise<HostContent | null>((resolve) => (becomesReady = resolve));

  function watchFromNow(): void {
    if (content === null) return;
    clearTimeout(loadTimer);
    silence.begin();
  }

  function run(loaded: readonly LoadedHandler[]): void {
    const refused = refuse(loaded);
    const handlers = loaded.filter(({ file }) => refused.every((each) => each.file !== file));
    content = { handlers, problems: [...problems, ...refused] };
    if (handlers.length > 0) {
      readyMs = lastProgressMs = performance.now();
      longestDeadlineMs = Math.max(...handlers.map(({ deadlineMs }) => deadlineMs));
    }
    tell({ type: "run", files: handlers.map(({ file }) => file) });
    // Remains of a file's import might keep it alive.
    if (handlers.length === 0) kill(null);
    becomesReady(content);
  }

  child.on("message", (raw) => {
    const { success, data: message } = fromHost.safeParse(raw);
    if (!success) return;
    switch (message.type) {
      case "loading":
        loading = message.file;
        loadTimer.refresh();
        break;
      case "problem":
        problems.push({ file: message.file, message: message.message });
        break;
      case "loaded":
        // Only the host's own sign of life counts: a handler could send one to stay alive.
        if (content !== null) return;
        loading = null;
        loadTimer.refresh();
        run(message.handlers);
        break;
      case "began":
        watchFromNow();
        running.add(message.handler);
        break;
      case "beat":
        watchFromNow();
        silence.heard();
        running = new Set(message.running);
        ({ heapShare } = message);
        lastProgressMs = performance.now() - message.sinceProgressMs;
        noteProgress(message.sinceProgressMs);
        break;
      case "ending":
        known = message.why;
        break;
    }
  });

  async function watchEnd(): Promise<EndedHost> {
    const [code, signal] = await exitOf(child, (error) => {
      known ??= notStarted(error);
    });
    clearTimeout(loadTimer);
    silence.end();
    process.removeListener("exit", killWithThis);
    becomesReady(null);
    const { handlers, problems: left } = content ?? { handlers: null, problems: [] };
    return {
      why: handlers?.length === 0 ? problemsText(left) : hostEndText({ code, signal, known, heapShare, loading }),
      running: [...running],
      suspects:
        loading === null ? (handlers ?? []).flatMap(({ file, name }) => (running.has(name) ? [file] : [])) : [loading],
      wasLate,
      ranMs: readyMs === null ? 0 : performance.now() - readyMs,
    };
  }

  const ended = watchEnd();
  tell(start);
  return {
    ready,
    ended,
    ranMs: () => (readyMs === null ? null : performance.now() - readyMs),
    sinceProgressMs: () => performance.now() - lastProgressMs,
    stop() {
      if (isStopping) return;
      isStopping = true;
      if (longestDeadlineMs === null) return kill(null);
      tell({ type: "stop" });
      const limit = setTimeout(() => kill("it did not stop when it was asked to"), longestDeadlineMs + marginMs);
      void ended.then(() => clearTimeout(limit));
    },
  };
}

const notStarted = (error: unknown): string => `it could not be started (${errorCode(error) ?? "unknown error"})`;

/** For example where the machine has no memory left for a process. */
const neverStarted = (error: unknown): HostProcess => ({
  ready: Promise.resolve(null),
  ended: Promise.resolve({
    why: notStarted(error),
    running: [],
    suspects: [],
    wasLate: false,
    ranMs: 0,
  }),
  ranMs: () => null,
  sinceProgressMs: () => 0,
  stop() {},
});

/** Resolves when all messages of the process were read. Calls `onFailure` where there is no process at all. */
const exitOf = (child: ChildProcess, onFailure: (error: Error) => void) =>
  new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once("close", (code, signal) => resolve([code, signal]));
    child.on("error", (error) => {
      // Any other is one of the channel, which ends with the process.
      if (child.pid !== undefined) return;
      onFailure(error);
      resolve([null, null]);
    });
  });

const blocked =
  "the process of the handlers gives no sign of life: a handler computes for long, or the machine is overloaded";
const stalled = "the handlers are given no changes: the process lives, but its last poll for changes does not end";
const goesOn = "the process of the handlers goes on";
