/** How often something was asked for within its current window of time. */
export interface RateWindow {
  count: number;
  /** Milliseconds of the sandbox's clock. */
  endsAtMs: number;
}

export interface RateWindows {
  /** The window of a key at `nowMs`; a new one when the last has ended. */
  current(key: string, nowMs: number, lengthMs: number): RateWindow;
}

/** Fixed windows that start with their first request. They are few: one for each merchant and category. */
export function createRateWindows(): RateWindows {
  const windows = new Map<string, RateWindow>();
  return {
    current(key, nowMs, lengthMs) {
      const known = windows.get(key);
      // A clock that was set back must not leave a window that ends in a year.
      if (known !== undefined && nowMs < known.endsAtMs && known.endsAtMs <= nowMs + lengthMs) {
        return known;
      }
      const fresh = { count: 0, endsAtMs: nowMs + lengthMs };
      windows.set(key, fresh);
      return fresh;
    },
  };
}
