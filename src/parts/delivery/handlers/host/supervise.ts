import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../../../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../../../../platform/retry-delay.ts";
import type { HostTrouble } from "../../dispatch/handler-hosts.ts";
import { type FileProblem, problemsText, shownPath, takeNames } from "../load-handlers.ts";
import {
  type EndedHost,
  type HostLimits,
  type HostProcess,
  type HostProcessDeps,
  startHostProcess,
} from "./host-process.ts";
import type { HostStart, LoadedHandler } from "./messages.ts";
import { type Trouble, afterEnd, isTold, onceItRuns } from "./trouble.ts";

export interface SuperviseDeps extends Pick<HostProcessDeps, "log" | "spawn"> {
  random: Random;
  start: Omit<HostStart, "files">;
  /** The paths of all handlers. */
  listFiles(): Promise<string[]>;
}

export interface SuperviseOptions extends HostLimits {
  /** The longest time for loading: each start that took too long doubles `loadMs` for the next one. */
  mostLoadMs: number;
  restart: RetryPolicy;
  /** A host that ran for longer has ended for the first time again. */
  wellAfterMs: number;
  /** An end that follows another one sooner is a lasting trouble, and is reported. */
  calmAfterMs: number;
  /** Each takes some 100 MB. Beyond this, files that end their process, or are not usable, stay with the others. */
  mostProcesses: number;
}

const defaultOptions: SuperviseOptions = {
  loadMs: 30_000,
  mostLoadMs: 300_000,
  silentMs: 1_000,
  marginMs: 10_000,
  restart: { maxAttempts: Number.POSITIVE_INFINITY, baseDelayMs: 1_000, maxDelayMs: 30_000 },
  wellAfterMs: 60_000,
  calmAfterMs: 600_000,
  mostProcesses: 4,
};

export interface RunningHandlers {
  /** The problem with their files at the first start; null if there was none, or it ended before that was known. */
  readonly problem: Promise<string | null>;
  /** Milliseconds since each of their processes last showed that it does not hang. */
  sinceProgressMs(): number;
  /** Everything that does not run properly: processes that do not start or end again and again, and unusable files. */
  troubles(): HostTrouble[];
  /** Waits for the handlers that run, until their deadlines at most. Idempotent. */
  close(): Promise<void>;
}

/** Files that share a process. */
interface Group {
  files: Set<string>;
  host: HostProcess | null;
  trouble: Trouble | null;
  /** Its unusable files that stay in it while the others run. */
  unusable: { files: string[]; sinceMs: number; why: string } | null;
}

const newGroup = (files: readonly string[]): Group => ({
  files: new Set(files),
  host: null,
  trouble: null,
  unusable: null,
});

/**
 * Runs the handlers in a process of their own, which is started again, with backoff, whenever it ends. Unusable files,
 * and files that may have ended their process twice in a row, get another process, so that the others continue. No
 * handler can end the calling process or block it.
 */
export function superviseHandlers(deps: SuperviseDeps, options: SuperviseOptions = defaultOptions): RunningHandlers {
  const { log, random, spawn } = deps;
  const closing = new AbortController();
  const groups = new Set<Group>();
  const keeping = new Set<Promise<void>>();
  /** The file of each handler's name: two processes must not run two handlers of one name. */
  const owners = new Map<string, string>();
  let listed: string[] = [];
  let tellFirst: (problem: string | null) => void = () => {};
  const problem = new Promise<string | null>((resolve) => (tellFirst = resolve));

  /** Reads which files there are. A file that is in no group joins the first one. */
  async function list(): Promise<void> {
    try {
      listed = await deps.listFiles();
    } catch (err) {
      log.error({ err }, "the folders of the handlers cannot be read");
      return;
    }
    for (const group of groups) {
      for (const file of group.files) if (!listed.includes(file)) group.files.delete(file);
    }
    const known = new Set([...groups].flatMap(({ files }) => [...files]));
    for (const file of listed) if (!known.has(file)) first.files.add(file);
  }

  function refuse(handlers: readonly LoadedHandler[]): FileProblem[] {
    const loaded = new Set(handlers.map(({ file }) => file));
    for (const [name, file] of owners) {
      if (loaded.has(file) || !listed.includes(file)) owners.delete(name);
    }
    return takeNames(owners, handlers);
  }

  function startHost(group: Group, now: number | null, loadMs: number): HostProcess {
    const start: HostStart = { ...deps.start, now, files: [...group.files] };
    group.host = startHostProcess({ log, spawn, start, refuse }, { ...options, loadMs });
    return group.host;
  }

  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal: closing.signal }).catch(() => {});

  /** Whether there is a file to start. Later files join the first process, so that one waits for them. */
  async function hasFiles(group: Group): Promise<boolean> {
    for (;;) {
      await list();
      if (closing.signal.aborted) return false;
      if (group.files.size > 0) return true;
      group.trouble = null;
      if (group !== first) return false;
      await pause(options.restart.maxDelayMs);
    }
  }

  async function keep(group: Group): Promise<void> {
    let { now } = deps.start;
    let { loadMs } = options;
    let suspects: string[] = [];
    for (let ends = 1; ; ends++) {
      if (!(await hasFiles(group))) break;
      const host = startHost(group, now, loadMs);
      const content = await host.ready;
      if (content !== null && content.handlers.length > 0) {
        [now, loadMs] = [null, options.loadMs];
        tellReady(content.handlers);
        group.trouble = onceItRuns(group.trouble);
        setApart(group, content.problems);
      }
      tellFirst(content === null || content.problems.length === 0 ? null : problemsText(content.problems));
      const end = await host.ended;
      group.host = null;
      if (closing.signal.aborted) break;
      group.trouble = afterEnd(group.trouble, end, options.calmAfterMs);
      if (end.ranMs > options.wellAfterMs) [ends, suspects] = [1, []];
      if (end.wasLate) loadMs = Math.min(options.mostLoadMs, 2 * loadMs);
      const delayMs = retryDelayMs(options.restart, ends, random) ?? 0;
      log.error({ why: end.why, handlers: end.running, retryInMs: delayMs }, ended);
      const again = end.suspects.filter((file) => suspects.includes(file));
      if (split(group, again, end)) [ends, suspects, group.trouble] = [0, [], null];
      else ({ suspects } = end);
      await pause(delayMs);
      if (closing.signal.aborted) break;
    }
    groups.delete(group);
  }

  function tellReady(handlers: readonly LoadedHandler[]): void {
    const names = handlers.map(({ name }) => name);
    log.info({ handlers: names }, "the process of the handlers runs");
  }

  function* troublesOf(group: Group): Generator<HostTrouble> {
    const { host, trouble, unusable } = group;
    const lasts = (sinceMs: number) => performance.now() - sinceMs;
    if (isTold(trouble, host?.ranMs() ?? null, options.calmAfterMs)) {
      const { sinceMs, why } = trouble;
      const files = [...group.files].map(shownPath);
      yield { files, isApart: group !== first, lastsMs: lasts(sinceMs), why };
    } else if (unusable !== null) {
      const { files, sinceMs, why } = unusable;
      yield { files: files.map(shownPath), isApart: true, lastsMs: lasts(sinceMs), why };
    }
  }

  /** Retries its unusable files in another process, if one is allowed; the group continues with the others. */
  function setApart(group: Group, problems: readonly FileProblem[]): void {
    group.unusable = null;
    if (problems.length === 0) return;
    const [files, why] = [problems.map(({ file }) => file), problemsText(problems)];
    const isMoved = moveApart(files);
    log.error({ problems: why }, isMoved ? notUsable : notUsableHere);
    if (!isMoved) group.unusable = { files, sinceMs: performance.now(), why };
  }

  /** Moves the files that may have ended their process twice in a row to another process; half of them where they are all. */
  function split({ files }: Group, again: readonly string[], { why }: EndedHost): boolean {
    if (again.length === 0 || files.size < 2) return false;
    const apart = again.length < files.size ? again : again.slice(0, Math.ceil(again.length / 2));
    const isMoved = moveApart(apart);
    if (isMoved) log.warn({ files: apart, why }, goApart);
    else log.warn({ files: again, processes: options.mostProcesses }, noFurther);
    return isMoved;
  }

  /** False: there are as many processes as may be, so they stay where they are. */
  function moveApart(files: readonly string[]): boolean {
    const processes = [...groups].filter((group) => group.files.size > 0).length;
    if (processes >= options.mostProcesses) return false;
    for (const group of groups) for (const file of files) group.files.delete(file);
    begin(newGroup(files));
    return true;
  }

  function begin(group: Group): void {
    groups.add(group);
    const kept = keep(group).finally(() => keeping.delete(kept));
    keeping.add(kept);
  }

  const first = newGroup([]);
  begin(first);

  return {
    problem,
    sinceProgressMs: () =>
      Math.max(0, ...[...groups].map(({ host }) => (host?.ranMs() == null ? 0 : host.sinceProgressMs()))),
    troubles: () => [...groups].flatMap((group) => [...troublesOf(group)]),
    async close() {
      closing.abort();
      tellFirst(null);
      for (const { host } of groups) host?.stop();
      await Promise.all(keeping);
    },
  };
}

const ended = "the process of the handlers has ended, and is started again";
const notUsable = "the other handlers run; those that are not usable are tried again in a process of their own";
const notUsableHere =
  "the other handlers run; there are as many processes as may be, so those that are not usable wait for the next start";
const goApart =
  "the process of the handlers has ended twice while one of these ran; they get another one, and the others go on";
const noFurther =
  "the process of the handlers has ended twice while one of these ran, and there are as many processes as may be";
