import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";

/** 40P01 deadlock, 40001 serialization: nothing is wrong but the moment. 55P03: a lock was not had in time. */
export function isSerializationFailure(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === "40P01" || code === "40001" || code === "55P03";
}

const maxTries = 5;

/** Repeats a whole transaction that failed because of another one. */
export async function withRetries<T>(
  { random }: { random: Random },
  transaction: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === maxTries || !isSerializationFailure(error)) throw error;
      await sleep(20 * attempt * (1 + random()));
    }
  }
}
