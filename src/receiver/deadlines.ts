/** Requests under way, each of which gets an answer in time. */
export interface Deadlines<T> {
  /** Puts an item under the deadline, until `leave`. */
  enter(item: T): Ticket<T>;
  /** The item is done. Does no harm after it has expired, or a second time. */
  leave(ticket: Ticket<T>): void;
  /** All that are under way, oldest first. */
  items(): T[];
  close(): void;
}

/** A place in the row of those under way. */
export interface Ticket<T> {
  readonly item: T;
  readonly lastTick: number;
  isListed: boolean;
  before: Ticket<T> | null;
  after: Ticket<T> | null;
}

/**
 * One coarse sweep instead of a timer for each request: an item expires at the latest after `limitMs` and at the
 * earliest a tick before. `onExpired` must not throw.
 *
 * A linked list whose links are cut on leaving, and not a Set: a table that a Set has outgrown goes on pointing
 * to its last members and to the next table, so that the garbage collector carries finished requests along
 * (measured: 3.4 instead of 1.0 KB promoted and 14 µs more CPU for each request).
 */
export function createDeadlines<T>(
  onExpired: (item: T) => void,
  { limitMs, tickMs }: { limitMs: number; tickMs: number },
): Deadlines<T> {
  const ticksToLive = Math.max(1, Math.floor(limitMs / tickMs));
  let tick = 0;
  let oldest: Ticket<T> | null = null;
  let newest: Ticket<T> | null = null;

  function leave(ticket: Ticket<T>): void {
    if (!ticket.isListed) return;
    ticket.isListed = false;
    if (ticket.before === null) oldest = ticket.after;
    else ticket.before.after = ticket.after;
    if (ticket.after === null) newest = ticket.before;
    else ticket.after.before = ticket.before;
    ticket.before = null;
    ticket.after = null;
  }

  const timer = setInterval(() => {
    tick += 1;
    while (oldest !== null && oldest.lastTick <= tick) {
      const { item } = oldest;
      leave(oldest);
      onExpired(item);
    }
  }, tickMs).unref();

  return {
    enter(item) {
      const ticket: Ticket<T> = {
        item,
        lastTick: tick + ticksToLive,
        isListed: true,
        before: newest,
        after: null,
      };
      if (newest === null) oldest = ticket;
      else newest.after = ticket;
      newest = ticket;
      return ticket;
    },
    leave,
    items() {
      const items: T[] = [];
      for (let each = oldest; each !== null; each = each.after) items.push(each.item);
      return items;
    },
    close: () => clearInterval(timer),
  };
}
