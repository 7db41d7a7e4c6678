import { debianPostgresInstalled } from "./debian-postgres.ts";
import { pgbouncerInstalled } from "./pgbouncer.ts";
import { redisInstalled } from "./redis.ts";

/**
 * Whether the Debian packages for the short form of `npm run torture -- scale` are installed. Reports the missing ones;
 * throws on CI, which installs them first.
 */
export function hasScalePackages(): boolean {
  const missing = [
    ...(redisInstalled ? [] : ["redis-server"]),
    ...(pgbouncerInstalled ? [] : ["pgbouncer"]),
    ...(debianPostgresInstalled ? [] : ["postgresql"]),
  ];
  if (missing.length === 0) return true;
  const what = `${missing.join(", ")}: not installed`;
  if (process.env["CI"] === "true") throw new Error(`${what}, and on CI this has to run`);
  console.warn(`${what}. The short form of "npm run torture -- scale" is skipped.`);
  return false;
}
