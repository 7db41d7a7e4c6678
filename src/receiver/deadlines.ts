/** Requests under way, each of which gets an answer in time. */
export interface Deadlines<T> {
  /** Puts an item under the deadline; `delete` it from the slot given back once it is done. */
  enter(item: T): Set<T>;
  /** All that are under way. */
  items(): T[];
  close(): void;
}

/**
 * One coarse sweep instead of a timer for each request: an item expires at the latest after `limitMs` and at the
 * earliest a tick before. `onExpired` must not throw.
 */
export function createDeadlines<T>(
  onExpired: (item: T) => void,
  { limitMs, tickMs }: { limitMs: number; tickMs: number },
): Deadlines<T> {
  const count = Math.max(2, Math.floor(limitMs / tickMs));
  const slots = Array.from({ length: count }, () => new Set<T>());
  let position = 0;
  let open = slots[0] ?? new Set<T>();
  const timer = setInterval(() => {
    position = (position + 1) % count;
    open = slots[position] ?? new Set<T>();
    const due = [...open];
    open.clear();
    for (const item of due) onExpired(item);
  }, tickMs).unref();
  return {
    enter(item) {
      open.add(item);
      return open;
    },
    items: () => slots.flatMap((slot) => [...slot]),
    close: () => clearInterval(timer),
  };
}
