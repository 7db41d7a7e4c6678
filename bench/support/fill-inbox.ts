import { createAppender } from "../../src/core/inbox/append.ts";
import { createLog } from "../../src/platform/log.ts";
import { createPool } from "../../src/platform/postgres/pool.ts";
import { extractEvent } from "../../src/core/receiver/webhook.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { eventOf } from "../load/event-of.ts";
import type { SentStream } from "./load-generator.ts";

/** Stores the first `count` deliveries of a stream as a receiver would. Returns the sequence numbers of the events. */
export async function fillInbox(url: string, sent: SentStream, count: number): Promise<number[]> {
  const log = createLog({ level: "warn", name: "bench" });
  const pool = createPool({ url, max: 1, applicationName: "tallyhook bench", log });
  const seqs: number[] = [];
  const numbers = new Set<number>();
  const appender = createAppender({
    pool,
    log,
    onCommitted: (stored) => void seqs.push(...stored),
  });
  try {
    for (let from = 0; from < count; from += chunkSize) {
      const events = Array.from({ length: Math.min(chunkSize, count - from) }, (_, n) => {
        const { body: raw, number } = eventOf(sent.stream, from + n);
        numbers.add(number);
        return { raw, secretId: "bench", ...extractEvent(defaultEnvelopePaths, raw) };
      });
      await Promise.all(events.map((event) => appender.append(event)));
    }
    await appender.close();
  } finally {
    await pool.end();
  }
  sent.nextEvent = count;
  sent.accepted = count;
  sent.distinct = numbers.size;
  return seqs;
}

/** No more than the appender's limit of waiting events. */
const chunkSize = 4_000;
