import { redisAvailable, redisInstalled } from "./redis.ts";

/** Once a run, before any test: says that the Redis suites are left out, or on CI that they may not be. */
export function setup(): void {
  if (redisInstalled) return;
  if (redisAvailable) {
    throw new Error("redis-server is not installed, and on CI the Redis suites must run");
  }
  console.warn("redis-server is not installed: the suites that need Redis are skipped.");
}
