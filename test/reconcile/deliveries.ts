import type { Knex } from "knex";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { storeRow } from "../inbox/stored-events.ts";
import type { Json, TestSandbox } from "../sandbox/harness.ts";
import { applyDeps } from "../worker/worker-stand.ts";

export interface Deliveries {
  /** Delivers what the service has announced since the last call; gives back how many of it were lost. */
  deliver(): Promise<{ delivered: number; lost: number }>;
}

/** Between a sandbox and an inbox: stores and applies every event, but for those that get lost for good. */
export function startDeliveries(db: Knex, sandbox: TestSandbox, isLost: (event: Json) => boolean): Deliveries {
  // A test moves the clock of its sandbox.
  const deps = { ...applyDeps(db), isClockMovable: true };
  const known = new Set<string>();
  return {
    async deliver() {
      const { data } = await sandbox.control("GET", "/events?limit=50000");
      const fresh = (data as Json[]).filter(({ id }) => !known.has(id));
      for (const { id } of fresh) known.add(id);
      const arrived = fresh.filter((event) => !isLost(event));
      const seqs: number[] = [];
      for (const event of arrived) seqs.push(await storeEvent(db, event));
      await applyBatch(deps, seqs);
      return { delivered: seqs.length, lost: fresh.length - seqs.length };
    },
  };
}

/** Puts an event of the sandbox into the inbox as the receiver would; to be applied. */
export const storeEvent = (db: Knex, event: Json): Promise<number> =>
  storeRow(db, {
    eventId: event.id,
    type: event.type,
    createdAt: event.created_at,
    raw: Buffer.from(JSON.stringify(event)),
  });
