import type { Cluster, Redis, RedisOptions as DriverOptions } from "ioredis";
import { type RedisAddress, type RedisCredentials, type RedisDeployment, readRedisUrl } from "./redis-url.ts";
import { onDemand } from "../../platform/on-demand.ts";

/** A producer fails fast, since the relay recovers the events that it could not add. A consumer retries without end. */
export type RedisUse = "producer" | "consumer";

export type RedisClient = Redis | Cluster;

/** The driver's types know the shape of replies by this option. */
type RedisOptions = Omit<DriverOptions, "replyMapping">;

/**
 * How long a connection may stay silent before it counts as broken. After an unannounced failover, the operating system
 * would drop it only after a quarter of an hour. A producer's calls take milliseconds; a worker waits up to 10 s for a
 * job.
 */
const receiveTimeoutMs = { producer: 5_000, consumer: 20_000 } as const;

/** The drivers' own delays grow: a client would stay idle for many seconds after Redis has recovered. */
const reconnectDelayMs = (attempt: number): number => Math.min(attempt * 100, 1_000);

/** A Sentinel, or a node of a cluster, that is away must not hold up the question to the next one. */
const askTimeoutMs = 2_000;

/**
 * Answers of a server that cannot be written to: a replica, one that loads its data or lost its master, one whose memory
 * or disk is full. A script's error may quote the server's. UNBLOCKED ends the wait for a job at a server that became a
 * replica.
 */
const unwritable = /(^|-)(READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|UNBLOCKED|NOREPLICAS|MISCONF|OOM)\b/;

/**
 * A new connection may lead to another server: the name has another address, or Sentinel another master. It also slows
 * down BullMQ, which repeats a refused call immediately.
 */
const reconnectOnError = ({ message }: Error): boolean => unwritable.test(message);

/**
 * Connects to what a URL names, and again whenever the connection is lost, until `disconnect()`. Throws for a URL that
 * the settings refuse.
 */
export function createRedisClient(url: string, use: RedisUse): RedisClient {
  const { deployment, problem } = readRedisUrl(url);
  if (problem !== undefined) throw new Error(`the URL of Redis ${problem}`);
  const client = connect(deployment, {
    connectTimeout: 5_000,
    socketTimeout: receiveTimeoutMs[use],
    maxRetriesPerRequest: use === "producer" ? 1 : null,
    retryStrategy: reconnectDelayMs,
    reconnectOnError,
  });
  // The client's users listen as well. An error without a listener would be printed, as after closing.
  client.on("error", () => {});
  return client;
}

function connect(deployment: RedisDeployment, options: RedisOptions): RedisClient {
  switch (deployment.kind) {
    case "server":
      return new onDemand.ioredis.Redis(deployment.url, options);
    case "sentinel":
      return new onDemand.ioredis.Redis({
        ...options,
        ...sentinelOptions(deployment),
        // A server that the Sentinels took out may be gone without a word.
        connectTimeout: askTimeoutMs,
        sentinelCommandTimeout: askTimeoutMs,
        sentinelRetryStrategy: reconnectDelayMs,
      });
    case "cluster": {
      // The pool of nodes has a strategy of its own: it asks the others for the slot's current place.
      const { retryStrategy: _, ...node } = options;
      return new onDemand.ioredis.Cluster(deployment.nodes, {
        clusterRetryStrategy: reconnectDelayMs,
        slotsRefreshTimeout: askTimeoutMs,
        // A certificate is for the name, and the name of a configuration endpoint has changing addresses.
        dnsLookup: (host, done) => done(null, host),
        redisOptions: {
          ...node,
          ...definedCredentials(deployment.credentials),
          ...(deployment.isEncrypted ? { tls: {} } : {}),
        },
      });
    }
  }
}

/** A connection to one Sentinel, not yet opened. It is tried once. */
export function sentinelClient(
  { sentinelCredentials, isEncrypted }: Extract<RedisDeployment, { kind: "sentinel" }>,
  { host, port }: RedisAddress,
): Redis {
  const client = new onDemand.ioredis.Redis({
    host,
    port,
    ...definedCredentials(sentinelCredentials),
    ...(isEncrypted ? { tls: {} } : {}),
    connectTimeout: askTimeoutMs,
    commandTimeout: askTimeoutMs,
    retryStrategy: () => null,
    lazyConnect: true,
  });
  client.on("error", () => {});
  return client;
}

function sentinelOptions(deployment: Extract<RedisDeployment, { kind: "sentinel" }>): RedisOptions {
  const { username, password } = deployment.sentinelCredentials;
  return {
    sentinels: deployment.sentinels,
    name: deployment.masterName,
    db: deployment.database,
    ...definedCredentials(deployment.credentials),
    ...(username === null ? {} : { sentinelUsername: username }),
    ...(password === null ? {} : { sentinelPassword: password }),
    ...(deployment.isEncrypted ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  };
}

const definedCredentials = ({ username, password }: RedisCredentials): RedisOptions => ({
  ...(username === null ? {} : { username }),
  ...(password === null ? {} : { password }),
});
