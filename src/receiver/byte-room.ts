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
