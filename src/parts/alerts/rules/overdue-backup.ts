import { lateBackupHours, readBackups, unsavedMs } from "../../../core/mirror/backups.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText } from "./wording.ts";

const hourMs = 3_600_000;

/** No verified backup for too long, where backups are made. */
export const overdueBackup = watch({
  rule: "backup_overdue",
  about: 'No backup has been verified for "afterHours" hours; only where "backup" was ever run.',
  severity: "error",
  settings: { afterHours: count(1, 10_000, lateBackupHours) },
  read: async (db) => ({ backups: await readBackups(db) }),
  begins({ backups }, { settings, localTime, shortTime }) {
    if (backups === null || unsavedMs(backups) <= settings.afterHours * hourMs) return null;
    const { takenAt, triedSince } = backups;
    return {
      key: "silence:backup",
      title: headlineText({
        lead:
          takenAt === null
            ? `No backup has succeeded since the first was begun ${shortTime(triedSince)}`
            : `No verified backup since ${shortTime(takenAt)}`,
        next: "Data that only this database has would be lost",
      }),
      advice:
        `Run "${tallyhook("backup DIRECTORY")}": it says what keeps it from being made. Then look why the timer ` +
        "did not (docs/backup.md).",
      facts: [{ label: "Last verified backup", value: takenAt === null ? "none" : localTime(takenAt) }],
      storedFacts: { last_backup: takenAt?.toISOString() ?? null },
    };
  },
  end: { title: "A backup is verified again", advice: "Nothing is left to do." },
  samples({ at, settings }) {
    const takenAt = new Date(at.getTime() - 48 * hourMs);
    const now = new Date(takenAt.getTime() + (settings.afterHours + 1) * hourMs);
    return { "no backup": { backups: { takenAt, triedSince: takenAt, now } } };
  },
});
