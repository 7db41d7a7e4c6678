import type { Knex } from "knex";
import { firstEventAt } from "../inbox/queries.ts";
import { coveredUntil } from "./coverage.ts";
import { isMirrorEmpty } from "./runs.ts";
import type { Run } from "./runs.ts";
import { bound } from "./slice.ts";

/** Later than every time, in their fixed form. */
const always = "9999-12-31T23:59:59.999999Z";

/** Whether a run fills the mirror. Once everything was read, what is missing here was lost since. */
export async function isFirstFill(
  db: Knex,
  { kind, t0 }: Pick<Run, "kind" | "t0">,
): Promise<boolean> {
  if (await isMirrorEmpty(db)) return true;
  return kind === "import" && (await coveredUntil(db, t0)) === null;
}

/**
 * Up to when what is missing here is imported, and no drift: nobody could have told us of it. On a mirror that only
 * events have filled so far, that is until the first of them. Null: everything was to be here. Fixed form.
 */
export async function importedUntil(
  db: Knex,
  { firstFill, reportOnly, t0 }: Pick<Run, "firstFill" | "reportOnly" | "t0">,
): Promise<string | null> {
  if (firstFill) return always;
  if (reportOnly || (await coveredUntil(db, t0)) !== null) return null;
  const first = await firstEventAt(db);
  return first === null ? null : bound(first);
}
