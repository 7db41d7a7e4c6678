import type { Knex } from "knex";
import { countChanges, readChanges, readableUntil } from "../../core/mirror/changes/read-changes.ts";
import type { Log } from "../../platform/log.ts";
import { type LiveScreen, linesInASecond } from "../cli/live-screen.ts";

/** The changes of one batch are shown together. */
const afterBatchMs = 100;
/** What a refetch finds comes a moment after its event. */
const lookAgainMs = 2_000;

/**
 * Shows the feed's new changes on the screen. It reads after `committed` was called, once a second at most, and once
 * more a little later; while nothing arrives it reads nothing.
 */
export async function showChanges({
  db,
  log,
  live,
}: {
  db: Knex;
  log: Log;
  live: LiveScreen;
}): Promise<{ committed(): void; close(): Promise<void> }> {
  let position = await readableUntil(db);
  let timer: NodeJS.Timeout | undefined;
  let reading: Promise<void> | null = null;
  let readAtMs = -Infinity;
  let isClosed = false;

  async function read(isLast: boolean): Promise<void> {
    readAtMs = performance.now();
    try {
      const page = await readChanges(db, { after: position, limit: linesInASecond });
      const until = page.hasMore ? await readableUntil(db) : page.position;
      live.changes(page.changes, page.hasMore ? await countChanges(db, { after: page.position, until }) : 0);
      position = until;
    } catch (err) {
      log.debug({ err }, "the changes could not be shown");
    }
    reading = null;
    if (!isLast) readIn(lookAgainMs, true);
  }

  function readIn(ms: number, isLast: boolean): void {
    if (isClosed || (timer !== undefined && isLast)) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      reading ??= read(isLast);
    }, ms).unref();
    isSoon = !isLast;
  }
  let isSoon = false;

  return {
    committed() {
      if (timer !== undefined && isSoon) return;
      readIn(Math.max(afterBatchMs, readAtMs + 1_000 - performance.now()), false);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await reading;
    },
  };
}
