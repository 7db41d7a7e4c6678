import { isInstalled, ledgerPrograms } from "./ledgers.ts";
import { pgbouncerInstalled } from "./pgbouncer.ts";
import { systemdAnalyzes } from "./systemd-analyze.ts";
import { redisAvailable, redisInstalled } from "./redis.ts";

/** Once a run, before any test: reports which suites are left out, or on CI that those with Redis may not be. */
export function setup(): void {
  if (!pgbouncerInstalled) {
    console.warn("pgbouncer is not installed: the tests behind it are skipped.");
  }
  if (!systemdAnalyzes) {
    console.warn("systemd-analyze (250 or later) is not there: the units are not checked by it.");
  }
  const missing = ledgerPrograms.filter((program) => !isInstalled(program));
  if (missing.length > 0) {
    console.warn(`${missing.join(", ")} not installed: the journal is not imported into them.`);
  }
  if (redisInstalled) return;
  if (redisAvailable) {
    throw new Error("redis-server is not installed, and on CI the Redis suites must run");
  }
  console.warn("redis-server is not installed: the suites that need Redis are skipped.");
}
