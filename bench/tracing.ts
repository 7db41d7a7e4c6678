import { pino } from "pino";
import { defaultEnvelopePaths } from "../src/core/contract/event-envelope.ts";
import { wallClock } from "../src/platform/clock.ts";
import { createLog } from "../src/platform/log.ts";
import { startTracing } from "../src/app/tracing.ts";
import { endSpan, isTracing, startSpan, traceFields, webhookContext } from "../src/platform/tracing/tracing.ts";
import { traceBatch } from "../src/core/worker/batch-trace.ts";
import { startOtlpReceiver } from "../test/support/otlp-receiver.ts";
import type { Benchmark } from "./benchmark.ts";
import {
  cpuMicroseconds,
  raw,
  shareOfVerifying,
  sinceMicroseconds,
  verified,
  verify,
} from "./support/cpu-of-an-event.ts";
import { median } from "./support/statistics.ts";

const nowhere = { write: () => {} };
const batchSize = 500;

/**
 * The cost of traces, in CPU time of this process: while tracing is off, the checks for it and one more part of a log
 * line; while it is on, the spans themselves. Compared with the least cost of an event, its verification and parsing: a
 * busy machine changes the times, but hardly their ratios. Needs no database.
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
      [verified, 10_000, verify],
      // Two in the receiver, one for a batch in the worker: three for an event that is alone.
      ["no spans: asked whether any are made, three times", 2_000_000, () => isTracing() || isTracing() || isTracing()],
      ["no spans: a log line as before", 100_000, () => formerLine.info({ seq: 1 }, "one")],
      ["no spans: a log line that would name its span", 100_000, () => line.info({ seq: 1 }, "one")],
    ];
    const costs = new Map<string, number>();
    for (const [what, times, work] of measures) {
      costs.set(what, cpuMicroseconds(rounds, times, work));
    }
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
      costs.set("spans: of a webhook", cpuMicroseconds(rounds, 20_000, webhook));
      const batches: number[] = [];
      for (let n = 0; n < rounds * 4; n++) {
        const before = process.cpuUsage();
        const batch = traceBatch({ clock: wallClock, places: defaultEnvelopePaths });
        await batch.until(batch.within(events, async () => completed));
        batches.push(sinceMicroseconds(before) / batchSize);
      }
      costs.set(`spans: of an event in a batch of ${batchSize}, with its export`, median(batches));
    } finally {
      await running.close();
      await collector.close();
    }
    return {
      rows: shareOfVerifying(costs),
      targets: [],
      notes: ["CPU time of one process, in which the collector took the spans as well"],
    };
  },
};
