export interface ReceiverLimits {
  /** From connecting, or from the first byte of a further request, to the end of the headers. */
  headersMs: number;
  /** The same to the end of the body. */
  requestMs: number;
  /** From the end of the headers to the answer. */
  answerMs: number;
  /** How coarsely the three are watched. */
  tickMs: number;
  /** How long a connection may be idle between two requests: longer than proxies keep theirs (60 s). */
  keepAliveMs: number;
  /** Requests over one connection; then it is closed, and the sender connects again. */
  requestsPerConnection: number;
  /** Connections from one address that have not sent a request yet. */
  silentPerAddress: number;
  /** Requests that wait at a time for the secrets to be read again, because their signature did not verify. */
  waitingForSecrets: number;
  /** Of those, from one address. */
  waitingPerAddress: number;
  /** For closing, everything together. */
  closeMs: number;
}

/** Headers, answer and two ticks together are under 10 s: the longest that a request is held. */
export const defaultReceiverLimits: ReceiverLimits = {
  headersMs: 3_000,
  requestMs: 5_000,
  answerMs: 6_000,
  tickMs: 250,
  keepAliveMs: 65_000,
  requestsPerConnection: 10_000,
  silentPerAddress: 256,
  waitingForSecrets: 64,
  waitingPerAddress: 32,
  closeMs: 10_000,
};

/** Enough for every connection to have a body of 64 KiB under way, and for four of the largest. */
export const defaultHeldBodyBytes = (maxBodyBytes: number): number =>
  Math.max(64 * 1024 * 1024, 4 * maxBodyBytes);

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

/** Room in memory that many share: whoever finds none must do without. */
export interface ByteBudget {
  /** False, and nothing taken, when that much is not free. */
  take(bytes: number): boolean;
  /** Gives back what was taken. */
  give(bytes: number): void;
  free(): number;
}

export function createByteBudget(size: number): ByteBudget {
  let free = size;
  return {
    take(bytes) {
      if (bytes > free) return false;
      free -= bytes;
      return true;
    },
    give(bytes) {
      free += bytes;
    },
    free: () => free,
  };
}

/** Places that some may hold at a time, and of those some from one address. */
export interface Places {
  /** False, and nothing taken, when none is free for this address. */
  take(address: string): boolean;
  give(address: string): void;
}

export function createPlaces({
  max,
  maxPerAddress,
}: {
  max: number;
  maxPerAddress: number;
}): Places {
  const takenBy = new Map<string, number>();
  let taken = 0;
  return {
    take(address) {
      const own = takenBy.get(address) ?? 0;
      if (taken >= max || own >= maxPerAddress) return false;
      taken += 1;
      takenBy.set(address, own + 1);
      return true;
    },
    give(address) {
      taken -= 1;
      const own = (takenBy.get(address) ?? 0) - 1;
      if (own > 0) takenBy.set(address, own);
      else takenBy.delete(address);
    },
  };
}
