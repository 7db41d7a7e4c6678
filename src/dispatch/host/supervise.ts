import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../../platform/retry-delay.ts";
import {
  type HostLimits,
  type HostProcess,
  type HostProcessDeps,
  startHostProcess,
} from "./host-process.ts";

export interface SuperviseOptions extends HostLimits {
  /** The longest time for loading: each start that took too long doubles `loadMs` for the next one. */
  mostLoadMs: number;
  restart: RetryPolicy;
  /** A host that ran for longer has ended for the first time again. */
  wellAfterMs: number;
}

const defaultOptions: SuperviseOptions = {
  loadMs: 30_000,
  mostLoadMs: 300_000,
  silentMs: 1_000,
  marginMs: 10_000,
  restart: { maxAttempts: Number.POSITIVE_INFINITY, baseDelayMs: 1_000, maxDelayMs: 30_000 },
  wellAfterMs: 60_000,
};

export interface RunningHandlers {
  /** What was wrong with their files at the first start; null if it loaded them, or ended otherwise. */
  readonly problem: Promise<string | null>;
  /** Milliseconds since their dispatch last showed that it does not hang, its restarts included. */
  sinceProgressMs(): number;
  /** Waits for the handlers that run, until their deadlines at most. Idempotent. */
  close(): Promise<void>;
}

/**
 * Runs the handlers in a process of their own, which is started again, with backoff, whenever it ends or cannot load
 * them. Nothing that they do ends the process that calls this, or keeps it waiting.
 */
export function superviseHandlers(
  deps: HostProcessDeps & { random: Random },
  options: SuperviseOptions = defaultOptions,
): RunningHandlers {
  const { log, random } = deps;
  const closing = new AbortController();
  let lastProgressMs = performance.now();
  let { loadMs } = options;
  let wasReady = false;
  let host = startHost();
  const problem = host.ended.then((end) => end.problem);

  function startHost(): HostProcess {
    const start = { ...deps.start, now: wasReady ? null : deps.start.now };
    const started = startHostProcess({ ...deps, start }, { ...options, loadMs });
    void started.ready.then((handlers) => {
      if (handlers === null) return;
      wasReady = true;
      loadMs = options.loadMs;
      log.info({ handlers }, "the process of the handlers runs");
    });
    return started;
  }

  async function keepRunning(): Promise<void> {
    for (let ends = 1; ; ends++) {
      const { why, running, ranMs, wasLate } = await host.ended;
      if (closing.signal.aborted) return;
      lastProgressMs = host.lastProgressMs() ?? lastProgressMs;
      if (ranMs > options.wellAfterMs) ends = 1;
      if (wasLate) loadMs = Math.min(options.mostLoadMs, 2 * loadMs);
      const delayMs = retryDelayMs(options.restart, ends, random) ?? 0;
      log.error({ why, handlers: running, retryInMs: delayMs }, ended);
      await sleep(delayMs, undefined, { signal: closing.signal }).catch(() => {});
      if (closing.signal.aborted) return;
      host = startHost();
    }
  }
  const keeping = keepRunning();

  return {
    problem: Promise.race([
      problem,
      host.ready.then((handlers) => (handlers === null ? problem : null)),
    ]),
    sinceProgressMs: () => performance.now() - (host.lastProgressMs() ?? lastProgressMs),
    async close() {
      closing.abort();
      host.stop();
      await host.ended;
      await keeping;
    },
  };
}

const ended = "the process of the handlers has ended, and is started again";
