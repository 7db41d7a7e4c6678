import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { createAppender, defaultAppendLimits } from "../../src/inbox/append.ts";
import type { Appender, AppendLimits } from "../../src/inbox/append.ts";
import type { VerifiedEvent } from "../../src/inbox/event.ts";
import { createLog } from "../../src/platform/log.ts";
import { createPool } from "../../src/platform/postgres.ts";

export interface InboxStand {
  appender: Appender;
  /** The sequence numbers of every committed batch, in the order of the commits. */
  batches: number[][];
  close(): Promise<void>;
}

/** An appender with a pool of its own, as a receiver has it. */
export function openInbox(url: string, limits: Partial<AppendLimits> = {}): InboxStand {
  const log = createLog({ level: "silent", name: "test" });
  const pool = createPool({ url, max: 2, applicationName: "test inbox", connectTimeoutMs: 2_000, log });
  const batches: number[][] = [];
  const appender = createAppender(
    { pool, log, onCommitted: (seqs) => void batches.push(seqs) },
    { ...defaultAppendLimits, ...limits },
  );
  return {
    appender,
    batches,
    async close() {
      await appender.close();
      await pool.end();
    },
  };
}

/** An event as the receiver hands it over. */
export function anEvent(eventId: string, body: string | Buffer = `{"id":"${eventId}"}`): VerifiedEvent {
  return {
    raw: Buffer.from(body),
    secretId: "test",
    eventId,
    type: "order.created",
    apiVersion: "2025-01-01",
    createdAt: "2025-03-01T12:00:00.000000Z",
  };
}

export const sha256 = (body: Buffer): string => createHash("sha256").update(body).digest("hex");

export const emptyInbox = async (db: Knex): Promise<void> => {
  await db.raw("truncate inbox.receipts, inbox.progress, inbox.repeats, inbox.fetches restart identity");
};
