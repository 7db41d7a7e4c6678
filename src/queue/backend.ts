import {
  type BackendFactory,
  type ConnectionOptions,
  type PgPool,
  type PostgresQueueBackend,
  type Processor,
  Queue,
  type QueueOptions,
  Worker,
  type WorkerOptions,
  createPostgresBackend,
  runMigrations,
  withBackend,
} from "bullmq";
import pg from "pg";
import { z } from "zod";
import { createPool } from "../platform/postgres/pool.ts";
import { withSessionSettings } from "../platform/postgres/session-settings.ts";

/** The queues and what their jobs carry: numbers and names only, never data of an event. */
export const jobSchemas = {
  /** A committed batch of the inbox. */
  apply: z.object({ seqs: z.array(z.int().positive()).min(1).max(5_000) }),
  /** Something that runs on a schedule. */
  schedule: z.object({ task: z.string().min(1) }),
} as const;

export type QueueName = keyof typeof jobSchemas;
export type JobPayload<Name extends QueueName> = z.infer<(typeof jobSchemas)[Name]>;

/** Where BullMQ keeps its jobs. */
export type BackendLocation = { kind: "postgres"; url: string } | { kind: "redis"; url: string };

/** Schema of BullMQ's own tables and functions. */
const schema = "bullmq";

/** Every instance of BullMQ owns a pool, and a worker holds four connections at rest: one of them listens. */
const poolSizes = { queue: 2, worker: 4 } as const;
const queues = Object.keys(jobSchemas).length;

/** On PostgreSQL the most connections that the queue takes of a process that adds jobs, and what a worker takes besides. */
export const queuePoolSizes = {
  producers: queues * poolSizes.queue,
  worker: queues * poolSizes.worker,
} as const;

/** A hash tag, so that all keys of a queue are in one slot of a Redis cluster. */
const redisPrefix = "{tallyhook}";

/** What the rest of this folder needs of BullMQ, the same for both backends. */
export interface Backend {
  queue(name: string): Queue;
  worker(name: string, processor: Processor, concurrency: number): Worker;
}

const queueOptions: Pick<QueueOptions, "defaultJobOptions"> = {
  // The inbox is the record: a job that is done or failed is of no further use.
  defaultJobOptions: { removeOnComplete: true, removeOnFail: { count: 100 }, attempts: 1 },
};

const workerOptions: Omit<WorkerOptions, "connection"> = {
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 100 },
  // The relay brings back what a dead worker held, long before a stalled check would.
  maxStalledCount: 5,
  // After an error of the connection. The default is 15 s, for which a worker would stand still after each restart
  // of the database.
  runRetryDelay: 1_000,
  // It is run once it is ready.
  autorun: false,
};

export function createBackend(location: BackendLocation): Backend {
  return location.kind === "redis" ? redisBackend(location.url) : postgresBackend(location.url);
}

/** BullMQ's own goes up to 20 s, for which the queue would stay away after Redis has come back. */
const reconnectDelayMs = (attempt: number): number => Math.min(attempt * 100, 1_000);

/**
 * How long a connection may owe an answer: after a failover that told nobody, the system would give it up only after a
 * quarter of an hour. A producer's calls take milliseconds; a worker asks for a job and waits up to 10 s for one.
 */
const redisSilenceMs = { producer: 5_000, consumer: 20_000 } as const;

function redisBackend(url: string): Backend {
  const location = { url, connectTimeout: 5_000, retryStrategy: reconnectDelayMs };
  // A producer fails fast, since the relay brings back what it could not add; a worker waits for ever. What is
  // asked before the first connection stands waits for it: every call has a time limit of its own.
  const producer: ConnectionOptions = {
    url,
    maxRetriesPerRequest: 1,
    connectTimeout: 5_000,
    socketTimeout: redisSilenceMs.producer,
  };
  const consumer: ConnectionOptions = {
    ...location,
    maxRetriesPerRequest: null,
    socketTimeout: redisSilenceMs.consumer,
  };
  return {
    queue: (name) =>
      new Queue(name, {
        ...queueOptions,
        prefix: redisPrefix,
        connection: producer,
        skipWaitingForReady: true,
        // It would be made before the connection stands, fail, and never be made again: no job could be added
        // until a restart. Workers check the version.
        skipVersionCheck: true,
      }),
    worker: (name, processor, concurrency) =>
      new Worker(name, processor, {
        ...workerOptions,
        prefix: redisPrefix,
        connection: consumer,
        concurrency,
      }),
  };
}

function postgresBackend(url: string): Backend {
  const classes = withBackend(postgresFactory);
  const connection = (max: number): PoolLocation => ({ url, max });
  return {
    queue: (name) =>
      new classes.Queue(name, {
        ...queueOptions,
        connection: connection(poolSizes.queue),
      }) as unknown as Queue,
    worker: (name, processor, concurrency) =>
      new classes.Worker(name, processor, {
        ...workerOptions,
        connection: connection(poolSizes.worker),
        concurrency,
      }) as unknown as Worker,
  };
}

interface PoolLocation {
  url: string;
  max: number;
}

/**
 * A pool of ours, which handles the errors of clients in use: BullMQ checks clients out of its own and does not
 * listen to them, so that a connection that breaks just then would end the process.
 */
const postgresFactory: BackendFactory<PostgresQueueBackend, PoolLocation> = (
  name,
  opts,
  factoryOptions,
) => {
  const pool = createPool({
    ...opts.connection,
    applicationName: "tallyhook queue",
    connectTimeoutMs: 5_000,
    // Statements take milliseconds; what waits for a job is a connection that idles and listens.
    silenceMs: 15_000,
    searchPath: schema,
    // The inbox is the record: the relay brings back a job that a crash took.
    mayLoseCommits: true,
  });
  // The declared listeners of a pg client and those that BullMQ asks for are worded differently.
  const connection = pool as unknown as PgPool;
  const backend = createPostgresBackend(name, { ...opts, connection }, factoryOptions);
  // BullMQ ends no pool that was handed to it.
  backend.on("close", () => void pool.end());
  return backend;
};

/** Brings BullMQ's own schema up to date. Idempotent; two at once wait for each other. */
export async function migrateQueueSchema(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: withSessionSettings(url),
    application_name: "tallyhook migrate",
  });
  await client.connect();
  try {
    await runMigrations(client, schema);
  } finally {
    await client.end();
  }
}
