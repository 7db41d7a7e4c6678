import type { Client } from "pg";
import type { LoadReport } from "./load/protocol.ts";
import type { Benchmark } from "./benchmark.ts";
import { meterCpu } from "./support/cpu-meter.ts";
import { whenQuiet } from "./support/quiet.ts";
import { median, spreadOf } from "./support/statistics.ts";
import { untilApplied, withSystem } from "./support/system.ts";

const perSecond = 100;
const wantedP99Ms = 50;

/**
 * (e) From the 2xx, as the sender sees it, to the commit that applied the event. `settled_at` would be too early, since
 * now() is the start of a transaction, and polling would add load. So the server records the time of each commit
 * (`track_commit_timestamp`), and the benchmark reads it afterwards through the row's xmin. Both times are of this
 * machine's clock. The server takes its time just before it flushes the commit to disk, so one fdatasync is not
 * counted.
 */
export const applyLatency: Benchmark = {
  name: "apply-latency",
  title: `Time from the 2xx to the applied row at ${perSecond} events/s`,
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    for (const backend of stand.backends) {
      const spreads = await withSystem(stand, backend, options, async ({ generator, port, client, pids }) => {
        const open = (seconds: number) =>
          generator.run({ port, plan: { kind: "open", seconds, perSecond, reportAcks: true } });
        await open(Math.min(2, options.seconds));
        const measured = [];
        for (let n = 1; n <= options.rounds; n++) {
          const { spread } = await whenQuiet(options, async () => {
            const stopMeter = meterCpu(pids);
            const report = await open(options.seconds);
            await untilApplied(client);
            const cpu = stopMeter();
            return { spread: spreadOf(await delaysMs(client, report)), cpu };
          });
          say(`round ${n}: queue on ${backend}: p99 ${spread.p99.toFixed(1)} ms`);
          measured.push(spread);
        }
        return measured;
      });
      const p99 = median(spreads.map((spread) => spread.p99));
      rows.push({
        queue: backend,
        "p50 ms": median(spreads.map(({ p50 }) => p50)).toFixed(1),
        "p99 ms": p99.toFixed(1),
        "max ms": Math.max(...spreads.map(({ max }) => max)).toFixed(1),
      });
      targets.push({
        what: `p99 from the 2xx to the applied row at ${perSecond} events/s, queue on ${backend}`,
        wanted: `< ${wantedP99Ms} ms`,
        measured: `${p99.toFixed(1)} ms`,
        reached: p99 < wantedP99Ms,
      });
    }
    const notes = ["the time of the commit is the server's own (track_commit_timestamp), less one flush"];
    return { rows, targets, notes };
  },
};

/** For each event of a report: the delay from its 2xx to the commit that applied it. */
export async function delaysMs(client: Client, { acks }: Pick<LoadReport, "acks">): Promise<number[]> {
  const { rows } = await client.query<{ event_id: string; at_ms: number }>(
    `select r.event_id, (extract(epoch from pg_xact_commit_timestamp(p.xmin)) * 1000)::float8 as at_ms
     from inbox.progress p join inbox.receipts r using (seq) where r.event_id = any($1::text[])`,
    [acks.map(({ eventId }) => eventId)],
  );
  const appliedAt = new Map(rows.map((row) => [row.event_id, row.at_ms]));
  return acks.map(({ eventId, atMs }) => {
    const appliedMs = appliedAt.get(eventId);
    if (appliedMs === undefined) throw new Error(`event ${eventId} was acknowledged and is not there`);
    return appliedMs - atMs;
  });
}
