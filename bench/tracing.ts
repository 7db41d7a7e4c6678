import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { defaultEnvelopePaths } from "../src/contract/event-envelope.ts";
import { wallClock } from "../src/platform/clock.ts";
import { createLog } from "../src/platform/log.ts";
import { startTracing } from "../src/platform/tracing/start-tracing.ts";
import {
  endSpan,
  isTracing,
  startSpan,
  traceFields,
  webhookContext,
} from "../src/platform/tracing/tracing.ts";
import { traceBatch } from "../src/worker/batch-trace.ts";
import { startOtlpReceiver } from "../test/support/otlp-receiver.ts";
import type { Benchmark } from "./benchmark.ts";
import { median } from "./support/statistics.ts";

const nowhere = { write: () => {} };
const raw = Buffer.from(
  JSON.stringify({ id: "evt_1", type: "order.paid", filler: randomBytes(600) }),
);
const batchSize = 500;

/**
 * What traces cost, in CPU time of this process: where none are made, the questions whether any are, and one more part
 * of a log line; where they are made, the spans themselves. Needs no database, and no quiet machine.
 */
export const tracing: Benchmark = {
  name: "tracing",
  title: "CPU time of traces for one event, without and with spans",
  isOnlyByName: true,
  async run(_stand, { rounds }) {
    const log = createLog({ level: "silent", name: "bench" });
    const formerLine = pino({ base: { name: "bench" } }, nowhere);
    const line = pino({ base: { name: "bench" }, mixin: traceFields }, nowhere);
    const measures: [string, number, () => unknown][] = [
      // Two in the receiver, one for a batch in the worker: three for an event that is alone.
      [
        "asked: are spans made?, three times",
        2_000_000,
        () => isTracing() || isTracing() || isTracing(),
      ],
      ["a log line as before", 100_000, () => formerLine.info({ seq: 1 }, "one")],
      ["a log line that would name its span", 100_000, () => line.info({ seq: 1 }, "one")],
    ];
    const rows = measures.map(([what, times, work]) => ({
      what: `no spans: ${what}`,
      "CPU µs": cpuMicroseconds(rounds, times, work).toFixed(4),
    }));
    const collector = await startOtlpReceiver({ status: 200, body: "{}" });
    const running = await startTracing(
      { log, clock: wallClock },
      { endpoint: collector.url, headers: null, serviceName: "bench", deployment: "bench" },
    );
    try {
      const webhook = (): void =>
        endSpan(
          startSpan("POST /webhooks", {
            kind: "server",
            facts: { "http.route": "/webhooks", "tallyhook.event.id": "evt_1" },
            identity: webhookContext(raw),
          }),
        );
      const events = Array.from({ length: batchSize }, (_, seq) => {
        return { seq, raw, receivedAt: new Date(), attempts: 0, isReplay: false };
      });
      const completed = events.map(({ seq }) => {
        return {
          seq,
          state: "applied",
          reason: null,
          resourceType: "order",
          resourceId: "1",
        } as const;
      });
      rows.push({
        what: "spans: of a webhook",
        "CPU µs": cpuMicroseconds(rounds, 20_000, webhook).toFixed(2),
      });
      const costs: number[] = [];
      for (let n = 0; n < rounds * 4; n++) {
        const before = process.cpuUsage();
        const batch = traceBatch({ clock: wallClock, places: defaultEnvelopePaths });
        await batch.until(batch.within(events, async () => completed));
        costs.push(sinceMicroseconds(before) / batchSize);
      }
      rows.push({
        what: `spans: of an event in a batch of ${batchSize}`,
        "CPU µs": median(costs).toFixed(2),
      });
    } finally {
      await running.close();
      await collector.close();
    }
    return {
      rows,
      targets: [],
      notes: ["CPU time and not time: a busy machine changes it little"],
    };
  },
};

function cpuMicroseconds(rounds: number, times: number, work: () => unknown): number {
  const costs: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const before = process.cpuUsage();
    for (let n = 0; n < times; n++) work();
    costs.push(sinceMicroseconds(before) / times);
  }
  return median(costs.slice(1));
}

function sinceMicroseconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
