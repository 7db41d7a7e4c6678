import type { ScheduledTask } from "../core/worker/scheduled-tasks.ts";

/** How often old rows are removed. */
export const hourly = (run: ScheduledTask["run"]): ScheduledTask => ({ schedule: { everyMs: 3_600_000 }, run });
