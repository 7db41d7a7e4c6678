import type { Knex } from "knex";
import { type DiskSpace, freePercent, freeText } from "../../../platform/disk-space.ts";
import type { AlertContext } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import type { Condition, End } from "../timeline.ts";
import { headlineText } from "./wording.ts";

/** What is asked of the machine. */
export interface DiskQuestions {
  /** The disk that holds the database; null where it is not on this machine or nobody can tell. */
  databaseDisk?(): Promise<DiskSpace | null>;
}

const key = "disk:database";

/** An alert that ends where it begins would come and go: so much more has to be free for its end. */
const endsAbovePercent = 2;

/** Reports that the database's disk is nearly full, while alerts can still be written to it. Needs a transaction. */
export async function watchDiskSpace(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { databaseDisk }: DiskQuestions,
): Promise<void> {
  const space = (await databaseDisk?.()) ?? null;
  if (space === null) return;
  const at = alertContext.clock.now();
  const { rules } = alertContext.settings;
  const free = freePercent(space);
  if (free < rules.disk_space.freePercent) {
    await raise(trx, alertContext, [diskSpaceCondition(rules, space, at)], "sweep");
  } else if (free >= rules.disk_space.freePercent + endsAbovePercent) {
    await clear(trx, alertContext, [{ key, end: diskSpaceEnd, at }], "sweep");
  }
}

export function diskSpaceCondition(
  { disk_space: rule }: AlertSettings["rules"],
  space: DiskSpace,
  at: Date,
): Condition {
  return {
    key,
    rule: "disk_space",
    severity: rule.severity,
    title: headlineText({
      lead: `The disk of the database is nearly full: ${freePercent(space)} % are free`,
      next: "Make room",
    }),
    advice:
      "When it is full, webhooks are answered 503 and no alert can be sent. Free what is not the database's (logs, " +
      'exports, old copies) or make the disk larger. "node src/bin/tallyhook.js events prune --older-than 90" removes ' +
      "the bytes of old events. Never delete files of the database, pg_wal least of all.",
    facts: [
      { label: "Free", value: freeText(space) },
      { label: "Folder", value: space.folder },
    ],
    storedFacts: { free_bytes: space.freeBytes, total_bytes: space.totalBytes },
    at,
  };
}

export const diskSpaceEnd: End = {
  title: "The disk of the database has room again",
  advice:
    'If it was full meanwhile, webhooks were refused: run "node src/bin/tallyhook.js reconcile" now. It corrects the ' +
    "mirror where webhooks were missed.",
};
