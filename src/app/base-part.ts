import { baseRights } from "./base-rights.ts";
import { coreReadings } from "./metrics/core-readings.ts";
import type { WorkingPart } from "./runtime.ts";
import { sqlFilesBeside } from "../platform/postgres/sql-file.ts";

const inFolder = sqlFilesBeside(new URL("../", import.meta.url));

/** Functions, views and triggers in order of creation: each may use those before it. */
const objects: readonly URL[] = [
  ...inFolder("core/inbox", "events", "first-event-at"),
  // All later files need the meaning of statuses.
  ...inFolder("core/mirror/as-of", "statuses"),
  ...inFolder("core/mirror", "resources", "append-only", "write/overrule", "forget-unbelieved", "retry-due", "awaits"),
  ...inFolder("core/mirror", "chargebacks", "changes/readable-until"),
  ...inFolder("core/inbox", "readable-until"),
  ...inFolder("core/mirror/changes", "next-changes"),
  // Objects as of a time.
  ...inFolder(
    "core/mirror/as-of",
    "json-values",
    "day-start",
    "recurring-amounts",
    "touched",
    "transactions",
    "orders",
  ),
  ...inFolder("core/mirror/as-of", "renewal-cycles", "order-retries", "day-sums", "subscription-states", "chargebacks"),
  // What moved money, and when it is booked.
  ...inFolder("core/mirror/as-of", "movements", "booked-movements"),
  // The rights that partitions take.
  ...inFolder("core/inbox", "keep-partitions"),
  ...inFolder("core/mirror/changes", "keep-partitions"),
  // What was read and proved.
  ...inFolder("app/proof", "enforced-findings", "routine-reads", "unproved-objects", "read-slices", "fresh-slices"),
  ...inFolder("app/proof", "changes-read-until", "read-unsettled", "finding-lives", "open-findings", "verdict"),
  ...inFolder("app/proof", "last-changes", "settlement-spans"),
  ...inFolder("app/people", "audit-append-only", "require-act"),
];

/** Core and app, which are always there. */
export const basePart: WorkingPart = {
  name: "base",
  rights: baseRights,
  sql: () => Promise.resolve({ program: objects }),
  async tasks(runtime) {
    const { rereadMisdated } = await import("../core/worker/reread-misdated.ts");
    const { retentionTasks } = await import("./retention.ts");
    return { ...(await retentionTasks(runtime)), "reread-misdated": rereadMisdated(await runtime.db()) };
  },
  metrics: coreReadings,
};
