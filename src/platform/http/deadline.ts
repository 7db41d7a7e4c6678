/** A signal that aborts after a time, or with any of its parents. Always `dispose` it. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** True once the time is up, as opposed to a parent's abort. */
  expired(): boolean;
  dispose(): void;
}

/**
 * `AbortSignal.any` and `AbortSignal.timeout` would do, but leave a listener and a timer behind for
 * every call made under a parent that lives as long as the process.
 */
export function startDeadline(ms: number, parents: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  let timeIsUp = false;
  const timer = setTimeout(() => {
    timeIsUp = true;
    controller.abort(new Error(`no answer within ${ms} ms`));
  }, ms);
  const follow = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const parent of parents) {
    if (parent.aborted) controller.abort(parent.reason);
    else parent.addEventListener("abort", follow, { once: true });
  }
  return {
    signal: controller.signal,
    expired: () => timeIsUp,
    dispose() {
      clearTimeout(timer);
      for (const parent of parents) parent.removeEventListener("abort", follow);
    },
  };
}
