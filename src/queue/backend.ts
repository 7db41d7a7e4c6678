import { once } from "node:events";
import {
  type BackendFactory,
  type PgPool,
  type PostgresQueueBackend,
  type Processor,
  type Queue,
  type QueueOptions,
  type RedisQueueBackend,
  type Worker,
  type WorkerOptions,
  createPostgresBackend,
  createRedisBackend,
  runMigrations,
  withBackend,
} from "bullmq";
import pg from "pg";
import { z } from "zod";
import {
  type LockPatience,
  defaultLockPatience,
  withLockPatience,
} from "../platform/postgres/lock-waits.ts";
import { createDatabase, createPool } from "../platform/postgres/pool.ts";
import { withSessionSettings } from "../platform/postgres/session-settings.ts";
import { type RedisClient, type RedisUse, createRedisClient } from "./redis-client.ts";

/** The queues and the payloads of their jobs: names only, never data of an event. */
export const jobSchemas = {
  /** Events were stored. Which ones, the inbox tells. */
  apply: z.object({}),
  /** A task that runs on a schedule. */
  schedule: z.object({ task: z.string().min(1) }),
} as const;

export type QueueName = keyof typeof jobSchemas;
export type JobPayload<Name extends QueueName> = z.infer<(typeof jobSchemas)[Name]>;

/** Where BullMQ keeps its jobs. */
export type BackendLocation = { kind: "postgres"; url: string } | { kind: "redis"; url: string };

/** The schema of BullMQ's tables and functions. */
const schema = "bullmq";

/** Every BullMQ instance owns a pool. An idle worker holds four connections, one of which listens. */
const poolSizes = { queue: 2, worker: 4 } as const;
const queueCount = Object.keys(jobSchemas).length;

/**
 * On PostgreSQL: the most connections that the queue uses in a process that adds jobs, and how many more a worker uses.
 */
export const queuePoolSizes = {
  producers: queueCount * poolSizes.queue,
  worker: queueCount * poolSizes.worker,
} as const;

/** A hash tag: all keys of a queue share one slot of a Redis cluster. */
const redisPrefix = "{tallyhook}";

/** The part of BullMQ that this folder uses, the same for both backends. */
export interface Backend {
  queue(name: string): Queue;
  worker(name: string, processor: Processor, concurrency: number): Worker;
  /**
   * Resolves once the queue has a connection, and rejects with the next error. The driver of Redis keeps calls that it
   * cannot send: those of a long outage would be without number.
   */
  connected(queue: Queue, signal: AbortSignal): Promise<void>;
}

/**
 * Writes to the queue without leaving anything: its settings, as they are. A backend that only reads, or has no room,
 * refuses it.
 */
export async function writeToQueue(queue: Queue): Promise<void> {
  await queue.getBackend().setQueueMeta(queue.metaValues);
}

const queueOptions: Pick<QueueOptions, "defaultJobOptions" | "streams"> = {
  // Nobody reads the stream of a queue's events.
  streams: { events: { maxLen: 1_000 } },
  // The inbox is the record, so a finished job is of no use. The last failed ones are kept to be looked at.
  defaultJobOptions: { removeOnComplete: true, removeOnFail: { count: 100 }, attempts: 1 },
};

const workerOptions: Omit<WorkerOptions, "connection"> = {
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 100 },
  // The relay recovers a dead worker's events long before BullMQ's check for stalled jobs does.
  maxStalledCount: 5,
  // Delay after a connection error. With the default of 15 s, a worker would idle that long after each restart of the
  // database.
  runRetryDelay: 1_000,
  // The worker is started once it is ready.
  autorun: false,
};

export function createBackend(location: BackendLocation): Backend {
  return location.kind === "redis" ? redisBackend(location.url) : postgresBackend(location.url);
}

function redisBackend(url: string): Backend {
  const classes = withBackend(redisFactory);
  return {
    queue: (name) =>
      new classes.Queue(name, {
        ...queueOptions,
        prefix: redisPrefix,
        connection: { url, use: "producer" },
        skipWaitingForReady: true,
        // The check would run before the connection is ready, fail, and never be repeated: no job could be added until
        // a restart. Workers check the version.
        skipVersionCheck: true,
      }) as unknown as Queue,
    worker: (name, processor, concurrency) =>
      new classes.Worker(name, processor, {
        ...workerOptions,
        prefix: redisPrefix,
        connection: { url, use: "consumer" },
        concurrency,
      }) as unknown as Worker,
    async connected(queue, signal) {
      const client = (await queue.getBackend().client) as unknown as RedisClient;
      if (client.status === "ready" || client.status === "end") return;
      await once(client, "ready", { signal });
    },
  };
}

/**
 * Uses our own client, since BullMQ makes none for a Redis Cluster, and leaves one that it never reached connecting for
 * ever. A worker also has a copy of it, which BullMQ closes, to wait for jobs.
 */
const redisFactory: BackendFactory<RedisQueueBackend, { url: string; use: RedisUse }> = (
  name,
  opts,
  factoryOptions,
) => {
  const client = createRedisClient(opts.connection.url, opts.connection.use);
  const backend = createRedisBackend(name, { ...opts, connection: client }, factoryOptions);
  const close = backend.close.bind(backend);
  backend.close = (force) => close(force).finally(() => client.disconnect());
  return backend;
};

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
    // The pool refuses in time what it has no connection for.
    connected: async () => {},
  };
}

interface PoolLocation {
  url: string;
  max: number;
}

/**
 * Uses our own pool, which handles the errors of clients in use. BullMQ does not listen for errors on clients that it
 * checks out of its own pool, so a connection that breaks at that moment would end the process.
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
    // Statements take milliseconds. Waiting for a job is done by an idle connection that listens.
    receiveTimeoutMs: 15_000,
    searchPath: schema,
    // The inbox is the record: the relay recovers a job lost in a crash.
    mayLoseCommits: true,
  });
  // The types of a pg client's listeners differ from those that BullMQ declares.
  const connection = pool as unknown as PgPool;
  const backend = createPostgresBackend(name, { ...opts, connection }, factoryOptions);
  // BullMQ does not end a pool that was passed to it.
  backend.on("close", () => void pool.end());
  return backend;
};

/**
 * Migrates BullMQ's own schema, in one transaction, with the patience of our migrations. Idempotent; concurrent calls
 * wait for each other. Throws `UnreachableError` when it does not get a lock in time.
 */
export async function migrateQueueSchema(
  url: string,
  options: Partial<LockPatience> = {},
): Promise<void> {
  const patience = { ...defaultLockPatience, ...options };
  const applicationName = "tallyhook migrate";
  // Connects when a wait has to be explained.
  const db = createDatabase({ url, poolMax: 1, applicationName });
  const client = new pg.Client({
    connectionString: withSessionSettings(url),
    application_name: applicationName,
  });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>(
      "select set_config('lock_timeout', $1, false), pg_backend_pid() as pid",
      [String(patience.lockTimeoutMs)],
    );
    const current = (): string => "the schema of the job queue";
    await withLockPatience({ db, pid: rows[0]?.pid ?? 0, current, patience }, () =>
      runMigrations(client, schema),
    );
    // BullMQ makes them with the first job of a queue, which takes a right that only the owner of the schema has.
    for (const name of Object.keys(jobSchemas)) {
      await client.query(`select ${schema}.next_job_id($1)`, [name]);
    }
  } finally {
    await client.end();
    await db.destroy();
  }
}
