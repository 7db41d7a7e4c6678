import type { Runtime } from "../../app/runtime.ts";
import { pendingSchema } from "../../app/schema.ts";
import { UnreachableError } from "../../platform/errors.ts";
import type { ReportsStandby } from "./base/read-standby.ts";
import { someOf } from "../../platform/readable-text.ts";

/** The standby that reports are read from; null without REPORTS_DATABASE_URL. */
export function reportsStandbyOf({
  config,
  secrets,
  reportsStandby,
  parts,
}: Pick<Runtime, "config" | "secrets" | "reportsStandby" | "parts">): ReportsStandby | null {
  if (secrets.reportsDatabaseUrl === null) return null;
  return {
    maxLagSeconds: config.reportsMaxLagSeconds,
    connect: reportsStandby,
    async assertMigrated(db) {
      const pending = await pendingSchema(db, parts);
      if (pending.length === 0) return;
      throw new UnreachableError(
        `REPORTS_DATABASE_URL: the standby lacks ${someOf(pending)}, which the primary has. Wait until it has caught up.`,
      );
    },
  };
}
