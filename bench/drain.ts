import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Benchmark, BenchOptions } from "./benchmark.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { fillInbox } from "./support/fill-inbox.ts";
import { describeCost } from "./support/format.ts";
import { newStream } from "./support/load-generator.ts";
import { placement } from "./support/pinning.ts";
import type { QueueBackend, Stand } from "./support/stand.ts";
import { leastDisturbed, whenQuiet } from "./support/quiet.ts";
import { median } from "./support/statistics.ts";
import { checkStored } from "./support/stored-events.ts";
import { serviceEnvironment, startService, untilApplied } from "./support/system.ts";
import { startWorker } from "./support/tallyhook.ts";

/**
 * (b) How fast one worker applies a full inbox on an otherwise idle machine. With `--mix real`, it also reads objects
 * from their service.
 */
export const drain: Benchmark = {
  name: "drain",
  title: "Events applied a second by one worker, from a full inbox",
  async run(stand, options, say) {
    const measured: Record<string, { rate: number; cpu: CpuUse }[]> = {};
    for (let round = 1; round <= options.rounds; round++) {
      for (const backend of stand.backends) {
        const result = await whenQuiet(options, () => oneDrain(stand, backend, options));
        say(`round ${round}: queue on ${backend}: ${Math.round(result.rate)}/s`);
        (measured[backend] ??= []).push(result);
      }
    }
    const rows = Object.entries(measured).map(([backend, results]) => {
      const rates = results.map(({ rate }) => rate);
      const cheapest = leastDisturbed(results);
      const cost = describeCost(cheapest.cpu, cheapest.rate);
      return {
        queue: backend,
        "applied/s": Math.round(median(rates)),
        lowest: Math.round(Math.min(...rates)),
        highest: Math.round(Math.max(...rates)),
        "CPU µs an event": cost.costs,
        elsewhere: (cheapest.cpu["elsewhere"] ?? 0).toFixed(2),
      };
    });
    const notes = [
      `${options.mix ?? "plain"} mix; timed from the first events that are applied after the worker has started`,
    ];
    return { rows, targets: [], notes };
  },
};

const oneDrain = (stand: Stand, backend: QueueBackend, options: BenchOptions) =>
  stand.withDatabase(backend, placement.all, async (place) => {
    const sent = newStream(options.mix ?? "plain");
    const seqs = await fillInbox(place.databaseUrl, sent, Math.ceil(options.seconds * 8_000));
    const client = new pg.Client({ connectionString: place.databaseUrl });
    await client.connect();
    const { directory } = stand;
    const { profile } = options;
    const placed = { directory, cpus: placement.all, profile };
    const service =
      sent.stream.mix === "real"
        ? await startService({ ...placed, name: `drain-service-${backend}` }, sent.stream)
        : null;
    const worker = await startWorker(
      { ...placed, name: `drain-${backend}` },
      place,
      service === null ? {} : serviceEnvironment(service),
    );
    try {
      // The time to start the process is not measured.
      const applied = await Promise.race([untilFirstApplied(client), worker.died]);
      const [stopMeter, startMs] = [
        meterCpu({
          ...place.pids,
          worker: worker.pid,
          ...(service === null ? {} : { service: service.process.pid }),
        }),
        performance.now(),
      ];
      await Promise.race([untilApplied(client), worker.died]);
      const seconds = (performance.now() - startMs) / 1_000;
      const result = { rate: (seqs.length - applied) / seconds, cpu: stopMeter() };
      await checkStored(client, sent, { isApplied: true });
      return result;
    } finally {
      await worker.stop();
      await service?.process.stop();
      await client.end();
    }
  });

/** Waits for the first applied events and returns how many there are by then. */
async function untilFirstApplied(client: pg.Client): Promise<number> {
  for (;;) {
    const { rows } = await client.query<{ applied: string }>(
      "select count(*) as applied from inbox.progress where state <> 'received'",
    );
    const applied = Number(rows[0]?.applied);
    if (applied > 0) return applied;
    await sleep(20);
  }
}
