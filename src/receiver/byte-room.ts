/** Room in memory that many share: whoever finds none must do without. */
export interface ByteRoom {
  /** False, and nothing taken, when that much is not free. */
  take(bytes: number): boolean;
  /** Gives back what was taken. */
  give(bytes: number): void;
  free(): number;
}

export function createByteRoom(size: number): ByteRoom {
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
