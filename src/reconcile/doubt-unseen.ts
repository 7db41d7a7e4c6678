import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import { walksEverything } from "./ledger.ts";
import { doubtUnseenOpenItems } from "./open-items.ts";
import { doubtOutOfTime } from "./out-of-time.ts";
import type { Run } from "./runs.ts";
import { slicedResources } from "./slice.ts";

/** Doubts what no slice can have shown: it is read by its id. */
export async function doubtUnseen(
  { db, serviceClock }: { db: Knex; serviceClock: Clock },
  { run: { id: run, kind, t0 }, failedSince }: { run: Run; failedSince: Date },
): Promise<void> {
  if (kind === "range") return;
  const noticedAt = serviceClock.now();
  for (const resource of slicedResources) {
    await doubtOutOfTime(db, { run, t0, noticedAt }, resource);
  }
  if (await walksEverything(db, run)) return;
  for (const resource of ["order", "transaction", "subscription"] as const) {
    await doubtUnseenOpenItems(db, { run, failedSince, noticedAt }, resource);
  }
}
