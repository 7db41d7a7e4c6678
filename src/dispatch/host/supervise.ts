import { setTimeout as sleep } from "node:timers/promises";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Random } from "../../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../../platform/retry-delay.ts";
import {
  type HostLimits,
  type HostProcess,
  type HostProcessDeps,
  startHostProcess,
} from "./host-process.ts";

export interface SuperviseOptions extends HostLimits {
  restart: RetryPolicy;
  /** A host that ran for longer has ended for the first time again. */
  wellAfterMs: number;
}

const defaultOptions: SuperviseOptions = {
  loadMs: 30_000,
  silentMs: 1_000,
  marginMs: 10_000,
  restart: { maxAttempts: Number.POSITIVE_INFINITY, baseDelayMs: 1_000, maxDelayMs: 30_000 },
  wellAfterMs: 60_000,
};

export interface RunningHandlers {
  /** Milliseconds since their dispatch last showed that it does not hang, its restarts included. */
  sinceProgressMs(): number;
  /** Waits for the handlers that run, until their deadlines at most. Idempotent. */
  close(): Promise<void>;
}

/**
 * Runs the handlers in a process of their own, which is started again, with backoff, whenever it ends. Resolves when it
 * has loaded them. Throws `ConfigurationError` where one is not usable, or ended the process while it was loaded;
 * after a restart such a problem is logged, and the next one follows.
 */
export async function superviseHandlers(
  deps: HostProcessDeps & { random: Random },
  options: SuperviseOptions = defaultOptions,
): Promise<RunningHandlers> {
  const { log, random } = deps;
  const closing = new AbortController();
  let host = startHostProcess(deps, options);
  if ((await host.ready) === null) {
    const { problem, why } = await host.ended;
    throw new ConfigurationError(problem ?? `The handlers could not be loaded: ${why}.`);
  }
  let lastProgressMs = performance.now();

  async function keepRunning(): Promise<void> {
    for (let ends = 1; ; ends++) {
      const { why, running, ranMs } = await host.ended;
      if (closing.signal.aborted) return;
      lastProgressMs = host.lastProgressMs() ?? lastProgressMs;
      if (ranMs > options.wellAfterMs) ends = 1;
      const delayMs = retryDelayMs(options.restart, ends, random) ?? 0;
      log.error({ why, handlers: running, retryInMs: delayMs }, ended);
      await sleep(delayMs, undefined, { signal: closing.signal }).catch(() => {});
      if (closing.signal.aborted) return;
      host = startHostProcess(deps, options);
      void tellWhenReady(host);
    }
  }

  const tellWhenReady = async ({ ready }: HostProcess): Promise<void> => {
    const handlers = await ready;
    if (handlers !== null) log.info({ handlers }, "the process of the handlers was started again");
  };
  const keeping = keepRunning();

  return {
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
