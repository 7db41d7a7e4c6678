import { type CheckResult, ok, warning } from "../../app/check-result.ts";
import type { Runtime } from "../../app/runtime.ts";
import { readRunLease } from "./runs/run-lease.ts";

/** Reports the process that reconciles. A lease that ended without a release belongs to a killed run. */
export async function checkRunLease(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const name = "reconciliation";
  const holder = await readRunLease(await runtime.db());
  if (holder === null) return ok(name, "no run has worked yet");
  const { pid, host, since, until, isOver } = holder;
  const who = `process ${pid} on ${host}`;
  if (!isOver) {
    return ok(
      name,
      `${who} has been reconciling since ${since.toISOString()}; it holds the lease until ${until?.toISOString()} and renews it`,
    );
  }
  return until === null
    ? ok(name, `no run is in progress; the last one was by ${who}`)
    : warning(
        name,
        `${who} stopped reconciling before its end: its lease ended at ${until.toISOString()}`,
        "see why the process ended or lost the database; a worker resumes a nightly run within 15 minutes, and the same " +
          "command any other",
      );
}
