import { type AppendLimits, type Appender, createAppender, defaultAppendLimits } from "../../src/core/inbox/append.ts";
import { createLog } from "../../src/platform/log.ts";
import { createPool } from "../../src/platform/postgres/pool.ts";
import { testPooling } from "../support/pooling.ts";

export interface InboxStand {
  appender: Appender;
  /** The sequence numbers of every committed batch, in the order of the commits. */
  batches: number[][];
  close(): Promise<void>;
}

/** An appender with a pool of its own, as a receiver has it. */
export function openInbox(url: string, limits: Partial<AppendLimits> = {}): InboxStand {
  const log = createLog({ level: "silent", name: "test" });
  const pool = createPool({
    url,
    pooling: testPooling(),
    max: 2,
    applicationName: "test inbox",
    connectTimeoutMs: 2_000,
    log,
  });
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
