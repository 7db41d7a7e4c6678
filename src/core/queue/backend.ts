import { once } from "node:events";
import type {
  BackendFactory,
  PgPool,
  PostgresQueueBackend,
  Processor,
  Queue,
  QueueOptions,
  RedisQueueBackend,
  Worker,
  WorkerOptions,
} from "bullmq";
import type { Knex } from "knex";
import { tallyhook } from "../../platform/command-line.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { type LockPatience, defaultLockPatience, withLockPatience } from "../../platform/postgres/lock-waits.ts";
import { createDatabase, createPool } from "../../platform/postgres/pool.ts";
import { withSessionSettings } from "../../platform/postgres/session-settings.ts";
import { type RedisClient, type RedisUse, createRedisClient } from "./redis-client.ts";
import { onDemand } from "../../platform/on-demand.ts";

/** The queue of wake-ups. Its jobs carry nothing: the inbox holds the work. */
export const queueName = "apply";

/** Location of BullMQ's jobs. */
export type BackendLocation = { kind: "postgres"; url: string } | { kind: "redis"; url: string };

/** The schema of BullMQ's tables and functions. */
const schema = "bullmq";

/**
 * On PostgreSQL: the most connections that the queue uses in a process that adds jobs, and how many more a worker uses.
 * Every BullMQ instance owns a pool. An idle worker holds four connections, one of which listens.
 */
export const queuePoolSizes = { producers: 2, worker: 4 } as const;

/** A hash tag: all keys of a queue share one slot of a Redis cluster. */
const redisPrefix = "{tallyhook}";

/** The part of BullMQ that this folder uses, the same for both backends. */
export interface Backend {
  queue(): Queue;
  worker(processor: Processor): Worker;
  /**
   * Resolves once the queue has a connection, and rejects with the next error. The driver of Redis keeps calls that it
   * cannot send: those of a long outage would be without number.
   */
  connected(queue: Queue, signal: AbortSignal): Promise<void>;
}

const queueOptions: Pick<QueueOptions, "defaultJobOptions" | "streams"> = {
  // The stream of a queue's events has no reader.
  streams: { events: { maxLen: 1_000 } },
  // The inbox is the record, so finished jobs are removed. The last failed ones are kept for inspection.
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

/**
 * BullMQ's check of the version reads `INFO`, which a user of Redis may lack: no job would ever arrive, and no error
 * either. In a queue it would run before the connection is ready, fail, and never be repeated. `doctor` checks the
 * server.
 */
function redisBackend(url: string): Backend {
  const classes = onDemand.bullmq.withBackend(redisFactory);
  return {
    queue: () =>
      new classes.Queue(queueName, {
        ...queueOptions,
        prefix: redisPrefix,
        connection: { url, use: "producer" },
        skipWaitingForReady: true,
        skipVersionCheck: true,
      }) as unknown as Queue,
    worker: (processor) =>
      new classes.Worker(queueName, processor, {
        ...workerOptions,
        prefix: redisPrefix,
        connection: { url, use: "consumer" },
        skipVersionCheck: true,
      }) as unknown as Worker,
    async connected(queue, signal) {
      const client = (await queue.getBackend().client) as unknown as RedisClient;
      if (client.status === "ready" || client.status === "end") return;
      await once(client, "ready", { signal });
    },
  };
}

/**
 * Uses our own client, since BullMQ makes none for a Redis Cluster, and never stops connecting to one that it could not
 * reach. A worker also has a copy of it, which BullMQ closes, for waiting for jobs.
 */
const redisFactory: BackendFactory<RedisQueueBackend, { url: string; use: RedisUse }> = (
  name,
  opts,
  factoryOptions,
) => {
  const client = createRedisClient(opts.connection.url, opts.connection.use);
  const backend = onDemand.bullmq.createRedisBackend(name, { ...opts, connection: client }, factoryOptions);
  const close = backend.close.bind(backend);
  backend.close = (force) => close(force).finally(() => client.disconnect());
  return backend;
};

function postgresBackend(url: string): Backend {
  const classes = onDemand.bullmq.withBackend(postgresFactory);
  const connection = (max: number): PoolLocation => ({ url, max });
  return {
    queue: () =>
      new classes.Queue(queueName, {
        ...queueOptions,
        connection: connection(queuePoolSizes.producers),
      }) as unknown as Queue,
    worker: (processor) =>
      new classes.Worker(queueName, processor, {
        ...workerOptions,
        connection: connection(queuePoolSizes.worker),
      }) as unknown as Worker,
    // The pool refuses in time when it has no connection.
    connected: async () => {},
  };
}

interface PoolLocation {
  url: string;
  max: number;
}

/**
 * Uses our own pool, which handles the errors of clients in use. BullMQ does not listen for errors on clients that it
 * checks out of its own pool, so a connection that breaks then would end the process.
 */
const postgresFactory: BackendFactory<PostgresQueueBackend, PoolLocation> = (name, opts, factoryOptions) => {
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
  const backend = onDemand.bullmq.createPostgresBackend(name, { ...opts, connection }, factoryOptions);
  // BullMQ does not end a pool that was passed to it.
  backend.on("close", () => void pool.end());
  return backend;
};

/**
 * Migrates BullMQ's own schema, in one transaction, with the time limits of our migrations. Idempotent; concurrent
 * calls wait for each other. Throws `UnreachableError` when it does not get a lock in time.
 */
export async function migrateQueueSchema(url: string, options: Partial<LockPatience> = {}): Promise<void> {
  const patience = { ...defaultLockPatience, ...options };
  const applicationName = "tallyhook migrate";
  // Connects when a wait has to be explained.
  const db = createDatabase({ url, poolMax: 1, applicationName });
  const client = new onDemand.pg.Client({
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
      onDemand.bullmq.runMigrations(client, schema),
    );
    // BullMQ makes a sequence with the first job of a queue, which takes a right that only the owner of the schema has.
    await client.query(`select ${schema}.next_job_id($1)`, [queueName]);
  } finally {
    await client.end();
    await db.destroy();
  }
}

/** Throws `ConfigurationError` if the database has no tables for the queue: no job would ever arrive. */
export async function assertQueueSchema(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: [{ isThere: boolean }] }>(
    `select to_regclass('${schema}.job') is not null as "isThere"`,
  );
  if (rows[0].isThere) return;
  throw new ConfigurationError(
    "The database has no tables for the job queue, which is in PostgreSQL where REDIS_URL is not set. Run " +
      `"${tallyhook("migrate")}", or set REDIS_URL for this process as for the others.`,
  );
}
