import type { Knex } from "knex";
import { readLockWaits } from "../inbox/locked-events.ts";
import { counted, durationText } from "../../platform/readable-text.ts";
import { Degraded, type ReadinessCheck } from "./readiness.ts";

/** Fails while events have waited for a lock for over a minute. Anyone may read the process and the time, and no more. */
export const lockWaitCheck = (db: Knex): ReadinessCheck => ({
  name: "locks",
  async check() {
    const waits = await readLockWaits(db);
    if (waits === null) return;
    const { events, waitedMs, holder } = waits;
    const [process = "a session that is not known"] = /^process \d+/.exec(holder) ?? [];
    const wait = `${counted(events, "event waits for a lock", "events wait for locks")}, the first for ${durationText(waitedMs)}, of`;
    throw new Degraded(`${wait} ${process}`, `${wait} ${holder}`);
  },
});
