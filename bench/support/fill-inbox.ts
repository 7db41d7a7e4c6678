import { createAppender } from "../../src/inbox/append.ts";
import { createLog } from "../../src/platform/log.ts";
import { createPool } from "../../src/platform/postgres/pool.ts";
import { extractEvent } from "../../src/receiver/webhook.ts";
import { defaultEnvelopePaths } from "../../src/contract/event-envelope.ts";
import { sampleEvent } from "../load/sample-events.ts";

/** Stores sample events as a receiver would. Returns their sequence numbers. */
export async function fillInbox(url: string, count: number): Promise<number[]> {
  const log = createLog({ level: "warn", name: "bench" });
  const pool = createPool({ url, max: 1, applicationName: "tallyhook bench", log });
  const seqs: number[] = [];
  const appender = createAppender({
    pool,
    log,
    onCommitted: (stored) => void seqs.push(...stored),
  });
  try {
    for (let from = 0; from < count; from += chunkSize) {
      const events = Array.from({ length: Math.min(chunkSize, count - from) }, (_, n) => {
        const { body: raw } = sampleEvent("drain", from + n);
        return { raw, secretId: "bench", ...extractEvent(defaultEnvelopePaths, raw) };
      });
      await Promise.all(events.map((event) => appender.append(event)));
    }
    await appender.close();
  } finally {
    await pool.end();
  }
  return seqs;
}

/** No more than the appender's limit of waiting events. */
const chunkSize = 4_000;
