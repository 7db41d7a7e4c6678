import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { BenchOptions } from "../benchmark.ts";
import type { EventStream, Mix } from "../load/protocol.ts";
import { type LoadGenerator, newStream, startLoadGenerator } from "./load-generator.ts";
import { placement } from "./pinning.ts";
import type { BenchProcess } from "./processes.ts";
import type { QueueBackend, Stand } from "./stand.ts";
import { type Placed, type RunningServer, startOtherServer, startReceiver, startWorker } from "./tallyhook.ts";

/** A whole deployment under load. Every program may use every CPU, as on a small server. */
export interface System {
  generator: LoadGenerator;
  port: number;
  receiver: BenchProcess;
  worker: BenchProcess;
  /** The benchmark's own connection. */
  client: pg.Client;
  /** Keyed by name, for the CPU meter. */
  pids: Readonly<Record<string, number>>;
}

export interface SystemOptions extends Pick<BenchOptions, "profile"> {
  workerEnv?: Record<string, string>;
  /** The generator's mix: plain unless set. With the realistic one, the worker has its service. */
  sends?: Mix;
}

export async function withSystem<T>(
  stand: Stand,
  backend: QueueBackend,
  { profile, workerEnv, sends = "plain" }: SystemOptions,
  work: (system: System) => Promise<T>,
): Promise<T> {
  const cpus = placement.all;
  const { directory } = stand;
  return stand.withDatabase(backend, cpus, async (place) => {
    const closers: (() => Promise<void>)[] = [];
    try {
      const named = (name: string) => ({ directory, cpus, profile, name: `${name}-${backend}` });
      const sent = newStream(sends);
      const service = sends === "real" ? await startService(named("service"), sent.stream) : null;
      if (service !== null) closers.push(() => service.process.stop());
      const worker = await startWorker(named("worker"), place, {
        ...(service === null ? {} : serviceEnvironment(service)),
        ...workerEnv,
      });
      closers.push(() => worker.stop());
      const { process: receiver, port } = await startReceiver(named("receiver"), place);
      closers.push(() => receiver.stop());
      const generator = startLoadGenerator({ directory, cpus }, sent);
      closers.push(() => generator.stop());
      const client = new pg.Client({ connectionString: place.databaseUrl });
      await client.connect();
      closers.push(() => client.end());
      const pids = {
        ...place.pids,
        receiver: receiver.pid,
        worker: worker.pid,
        generator: generator.process.pid,
        ...(service === null ? {} : { service: service.process.pid }),
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

/** Starts the service from which a worker of a realistic stream reads. */
export const startService = (placed: Placed, stream: EventStream): Promise<RunningServer> =>
  startOtherServer(placed, {
    name: placed.name ?? "service",
    source: new URL("../servers/real-service.ts", import.meta.url),
    args: [JSON.stringify(stream)],
  });

/** The settings with which a worker reads from that service. */
export const serviceEnvironment = ({ port }: RunningServer): Record<string, string> => ({
  SVC_BASE_URL: `http://127.0.0.1:${port}`,
  SVC_API_KEY: "svc_test_sk_bench",
});

const pollMs = 50;
/** A refetch takes milliseconds. One that fails is repeated endlessly. */
const readWithinMs = 60_000;

/** Waits until no refetch is open, so that all work of the events is done. */
export async function untilRead(client: pg.Client): Promise<void> {
  const deadlineMs = performance.now() + readWithinMs;
  for (;;) {
    const { rows } = await client.query<{ open: number; error: string | null }>(
      "select count(*)::int as open, max(last_error) as error from inbox.fetches",
    );
    const { open, error } = rows[0]!;
    if (open === 0) return;
    if (performance.now() > deadlineMs)
      throw new Error(`${open} objects were not read again, one since: ${error ?? "no answer"}`);
    await sleep(pollMs);
  }
}

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
