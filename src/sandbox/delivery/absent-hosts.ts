import type { PostResult } from "./transport.ts";

/** Makes an attempt, unless its move of the clock already found the host absent. `move` is null outside of one. */
export type UnlessAbsent = (
  url: string,
  move: number | null,
  attempt: () => Promise<PostResult>,
) => Promise<PostResult>;

/**
 * A move over a year has thousands of deliveries and retries, all made within seconds: a name that cannot be looked up is
 * looked up once, not for each. The first attempt of a move to a host goes ahead of the others; after the move the host is
 * tried again.
 */
export function createAbsentHosts(): UnlessAbsent {
  const firstAttempts = new Map<string, Promise<PostResult>>();
  let lastMove: number | null = null;
  return async (url, move, attempt) => {
    if (move === null) return attempt();
    if (move !== lastMove) firstAttempts.clear();
    lastMove = move;
    const host = new URL(url).hostname;
    const first = firstAttempts.get(host);
    if (first !== undefined) {
      const result = await first;
      return result.unreachable === "host" ? result : attempt();
    }
    const made = attempt();
    firstAttempts.set(host, made);
    return made;
  };
}
