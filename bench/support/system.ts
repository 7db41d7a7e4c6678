import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { BenchOptions } from "../benchmark.ts";
import { type LoadGenerator, startLoadGenerator } from "./load-generator.ts";
import { placement } from "./pinning.ts";
import type { BenchProcess } from "./processes.ts";
import type { QueueBackend, Stand } from "./stand.ts";
import { startReceiver, startWorker } from "./tallyhook.ts";

/** A whole deployment under load. Every program may use every CPU, as on a small server. */
export interface System {
  generator: LoadGenerator;
  port: number;
  receiver: BenchProcess;
  worker: BenchProcess;
  /** The benchmark's own connection. */
  client: pg.Client;
  /** By name, for the CPU meter. */
  pids: Readonly<Record<string, number>>;
}

export async function withSystem<T>(
  stand: Stand,
  backend: QueueBackend,
  { profile, workerEnv }: Pick<BenchOptions, "profile"> & { workerEnv?: Record<string, string> },
  work: (system: System) => Promise<T>,
): Promise<T> {
  const cpus = placement.all;
  const { directory } = stand;
  return stand.withDatabase(backend, cpus, async (place) => {
    const closers: (() => Promise<void>)[] = [];
    try {
      const named = (name: string) => ({ directory, cpus, profile, name: `${name}-${backend}` });
      const worker = await startWorker(named("worker"), place, workerEnv);
      closers.push(() => worker.stop());
      const { process: receiver, port } = await startReceiver(named("receiver"), place);
      closers.push(() => receiver.stop());
      const generator = startLoadGenerator({ directory, cpus });
      closers.push(() => generator.stop());
      const client = new pg.Client({ connectionString: place.databaseUrl });
      await client.connect();
      closers.push(() => client.end());
      const pids = {
        ...place.pids,
        receiver: receiver.pid,
        worker: worker.pid,
        generator: generator.process.pid,
      };
      return await Promise.race([
        work({ generator, port, receiver, worker, client, pids }),
        receiver.died,
        worker.died,
      ]);
    } finally {
      for (const close of closers.reverse()) await close();
    }
  });
}

const pollMs = 50;

/** Waits until no event waits to be applied. Throws if an event failed: the result would be meaningless. */
export async function untilApplied(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ open: boolean }>(
      "select exists (select from inbox.progress where state = 'received') as open",
    );
    if (rows[0]?.open === false) break;
    await sleep(pollMs);
  }
  const { rows } = await client.query<{ state: string; n: string; reason: string }>(
    `select state, count(*) as n, min(reason) as reason from inbox.progress
     where state not in ('applied', 'stale') group by state`,
  );
  if (rows.length > 0) throw new Error(`not every event was applied: ${JSON.stringify(rows)}`);
}
