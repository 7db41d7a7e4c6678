import { tallyhook } from "../../../platform/command-line.ts";
import { type DiskSpace, freePercent, freeText } from "../../../platform/disk-space.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText } from "./wording.ts";

/** A question that the sweep asks the machine. */
interface DiskQuestions {
  /** The disk that holds the database; null where it is not on this machine or is unknown. */
  databaseDisk?(): Promise<DiskSpace | null>;
}

/** An alert that ends where it begins would come and go: so much more has to be free for its end. */
const endsAbovePercent = 2;

/** The database's disk is nearly full, while alerts can still be written to it. */
export const diskSpace = watch({
  rule: "disk_space",
  about: "The disk that holds the embedded database.",
  severity: "critical",
  settings: { freePercent: count(1, 50, 10) },
  read: async (_db, _context, { databaseDisk }: DiskQuestions) => (await databaseDisk?.()) ?? null,
  begins: (space, { settings }) =>
    freePercent(space) >= settings.freePercent
      ? null
      : {
          key: "disk:database",
          title: headlineText({
            lead: `The disk of the database is nearly full: ${freePercent(space)} % are free`,
            next: "Make room",
          }),
          advice:
            "When it is full, webhooks are answered 503 and no alert can be sent. Free what is not the database's " +
            `(logs, exports, old copies) or make the disk larger. "${tallyhook("events prune --older-than 90")}" ` +
            "removes the bytes of old events. Never delete files of the database, least of all in pg_wal.",
          facts: [
            { label: "Free", value: freeText(space) },
            { label: "Folder", value: space.folder },
          ],
          storedFacts: { free_bytes: space.freeBytes, total_bytes: space.totalBytes },
        },
  isOver: (_key, space, { settings }) => freePercent(space) >= settings.freePercent + endsAbovePercent,
  end: {
    title: "The disk of the database has room again",
    advice:
      `If it was full in the meantime, webhooks were refused: run "${tallyhook("reconcile")}" now. It corrects the ` +
      "mirror where webhooks were missed.",
  },
  samples: () => ({
    "a disk nearly full": { folder: "/srv/tallyhook", freeBytes: 1_400_000_000, totalBytes: 20_000_000_000 },
  }),
});
