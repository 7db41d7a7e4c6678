import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { runClosedLoop } from "../load/closed-loop.ts";
import { openConnections } from "../load/connections.ts";
import { signed } from "../load/signed-request.ts";
import { meterSeconds } from "./cpu-meter.ts";
import { grownEvent } from "./grown-events.ts";
import type { Cost } from "./growth.ts";
import { placement } from "./pinning.ts";
import { startReceiver, startWorker } from "./tallyhook.ts";

export interface RoundPlace {
  /** For logs and profiles. */
  directory: string;
  postgresPid: number;
  profile: boolean;
}

/** The events of the stream `grownEvent` that a round sends. */
export interface RoundEvents {
  first: number;
  count: number;
  /** Number of orders in the grown database. */
  orders: number;
}

export interface RunningStore {
  name: string;
  databaseUrl: string;
  /** Sends the events to the receiver, and returns what storing one cost. */
  run(events: RoundEvents, options: { checkpoint: boolean }): Promise<Cost>;
  stop(): Promise<void>;
}

const connections = 64;
const seed = "round";
/** More than any machine needs for a round: then the receiver hangs. */
const longestRoundSeconds = 600;
/** Often, until the first event is applied: earlier applications are not measured. */
const startPollMs = 10;
const endPollMs = 250;

/** Starts a receiver on a database. */
export async function startStore(
  { directory, postgresPid, profile }: RoundPlace,
  name: string,
  databaseUrl: string,
): Promise<RunningStore> {
  const placed = { directory, cpus: placement.all, profile, name: `receiver-${name}` };
  const receiver = await startReceiver(placed, { databaseUrl, redisUrl: null, pids: {} });
  return {
    name,
    databaseUrl,
    async run({ first, count, orders }, { checkpoint }) {
      const requests = Array.from({ length: count }, (_, n) => signed(grownEvent(seed, first + n, orders)));
      const client = await connect(databaseUrl);
      const open = await openConnections(receiver.port, connections);
      try {
        if (checkpoint) await client.query("checkpoint");
        const meter = await startMeter(client, {
          postgres: postgresPid,
          receiver: receiver.process.pid,
        });
        const plan = { kind: "closed", seconds: longestRoundSeconds, maxEvents: count } as const;
        const tally = await Promise.race([
          runClosedLoop(open, plan, { requests, acceptedEvents: new Set() }),
          open.lost,
        ]);
        const cost = await meter(count);
        const { accepted, refused } = tally.report();
        if (accepted < count) throw new Error(`of ${count} events ${accepted} were stored: ${JSON.stringify(refused)}`);
        return cost;
      } finally {
        open.close();
        await client.end();
      }
    },
    stop: () => receiver.process.stop(),
  };
}

/**
 * Starts one worker on a store's events, and returns its cost of applying one. It takes batches from the inbox in any
 * case. The worker's start is not measured.
 */
export async function applyStored(
  { directory, postgresPid, profile }: RoundPlace,
  { name, databaseUrl }: RunningStore,
  { checkpoint }: { checkpoint: boolean },
): Promise<Cost> {
  const client = await connect(databaseUrl);
  try {
    const seqs = await waitingSeqs(client);
    const [first, last] = [seqs[0], seqs.at(-1)];
    if (first === undefined || last === undefined) throw new Error("nothing waits to be applied");
    const place = { databaseUrl, redisUrl: null, pids: {} };
    if (checkpoint) await client.query("checkpoint");
    const placed = { directory, cpus: placement.all, profile, name: `worker-${name}` };
    const worker = await startWorker(placed, place);
    try {
      const started = async () => (await stateOf(client, first)) !== "received";
      await Promise.race([until(started, startPollMs), worker.died]);
      const already = await countCompleted(client, first);
      if (already > seqs.length / 2) throw new Error("too few events to be measured: set --seconds");
      const meter = await startMeter(client, { postgres: postgresPid, worker: worker.pid });
      const ended = async () =>
        (await stateOf(client, last)) !== "received" && (await countCompleted(client, first)) === seqs.length;
      await Promise.race([until(ended, endPollMs), worker.died]);
      const cost = await meter(seqs.length - already);
      await refuseFailures(client, first);
      return cost;
    } finally {
      await worker.stop();
    }
  } finally {
    await client.end();
  }
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Starts measuring. The returned function gives the cost of one of so many events since then. */
async function startMeter(
  client: pg.Client,
  pids: Readonly<Record<string, number>>,
): Promise<(events: number) => Promise<Cost>> {
  const position = async () => {
    const { rows } = await client.query<{ at: string }>(
      "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as at",
    );
    return Number(rows[0]?.at);
  };
  const before = await position();
  const meter = meterSeconds(pids);
  return async (events) => {
    const seconds = meter();
    return {
      cpuMicros: Object.fromEntries(Object.entries(seconds).map(([program, used]) => [program, (used * 1e6) / events])),
      walBytes: ((await position()) - before) / events,
    };
  };
}

/** Through the view, as all that follows: the tables behind it may change. */
async function waitingSeqs(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query<{ seq: string }>(
    "select seq from inbox.events where state = 'received' order by seq",
  );
  return rows.map(({ seq }) => Number(seq));
}

async function stateOf(client: pg.Client, seq: number): Promise<string | undefined> {
  const { rows } = await client.query<{ state: string }>("select state from inbox.events where seq = $1", [seq]);
  return rows[0]?.state;
}

/** Counts from this event on: a range of the key, so that a count costs little on a large inbox. */
async function countCompleted(client: pg.Client, first: number): Promise<number> {
  const { rows } = await client.query<{ n: string }>(
    "select count(*) as n from inbox.events where seq >= $1 and state <> 'received'",
    [first],
  );
  return Number(rows[0]?.n);
}

/** Throws if events failed: the result would be meaningless. */
async function refuseFailures(client: pg.Client, first: number): Promise<void> {
  const { rows } = await client.query<{ state: string; reason: string }>(
    `select state, min(reason) as reason from inbox.events
     where seq >= $1 and state not in ('applied', 'stale') group by state`,
    [first],
  );
  if (rows.length > 0) throw new Error(`not every event was applied: ${JSON.stringify(rows)}`);
}

async function until(isSo: () => Promise<boolean>, pollMs: number): Promise<void> {
  while (!(await isSo())) await sleep(pollMs);
}
