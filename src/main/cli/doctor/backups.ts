import { lateBackupHours, readBackups, unsavedMs } from "../../../core/mirror/backups.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { durationText } from "../../../platform/readable-text.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok, skipped } from "../../../app/check-result.ts";

/** Checks the age of the last verified backup, where any was ever begun. */
export async function checkBackups(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const name = "backup";
  const backups = await readBackups(await runtime.db());
  if (backups === null) {
    return skipped(name, `"${tallyhook("backup")}" was never run on this database`);
  }
  const age = durationText(unsavedMs(backups));
  if (unsavedMs(backups) <= lateBackupHours * 3_600_000 && backups.takenAt !== null) {
    return ok(name, `the last verified one is ${age} old`);
  }
  return failed(
    name,
    backups.takenAt === null ? `none has succeeded since the first was begun ${age} ago` : `no verified one for ${age}`,
    `run "${tallyhook("backup DIRECTORY")}", which says what keeps it from being made (docs/backup.md)`,
  );
}
