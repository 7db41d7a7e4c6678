import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis.ts";

const masterName = "tally-master";

/** A key in the queue's slot: they all share its hash tag. */
const queueKey = "{tallyhook}";

/** A Redis that is more than one server. */
export interface ManyRedis {
  readonly url: string;
  /** Every server that keeps data. */
  readonly servers: readonly RedisServer[];
  /** The server that has the queue. Rejects while there is none. */
  queueOwner(): Promise<RedisServer>;
  /** Resolves when another server than this one has the queue. */
  isTakenOver(from: RedisServer): Promise<void>;
  /** The traffic on the server that has the queue. Rejects while there is none. */
  queueTraffic(): Promise<QueueTraffic>;
  destroy(): Promise<void>;
}

export interface QueueTraffic {
  /** Wake-ups that were added, since ever. */
  added: number;
  /** Jobs not yet taken. */
  waiting: number;
  /** Connections that wait for a job: while there is none, one for each of a worker's two queues. */
  consumers: number;
}

export interface Watched extends ManyRedis {
  readonly sentinels: readonly RedisServer[];
  /** Resolves when the master has all its replicas. */
  isReplicated(): Promise<void>;
  /** Lets the Sentinels change the master. Resolves when the former one, which stays alive, is a replica. */
  failOver(): Promise<void>;
}

/** Queries one server over a connection of its own. */
export async function askRedis<T>(port: number, ask: (client: Redis) => Promise<T>, password?: string): Promise<T> {
  const client = new Redis(port, "127.0.0.1", {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    // A paused one never answers.
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    ...(password === undefined ? {} : { password }),
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return await ask(client);
  } finally {
    client.disconnect();
  }
}

/** Replication begins immediately; by default it waits for further replicas. */
const replicated = { "repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1" };

export interface WatchedOptions {
  replicas?: number;
  sentinels?: number;
  /** After this time without an answer the master counts as away. */
  downAfterMs?: number;
  /** Password of the servers; the Sentinels then have `sentinelPassword`. */
  password?: string;
  sentinelPassword?: string;
}

/** A master, replicas and Sentinels, which know of each other when this resolves. */
export const startWatchedRedis = (options: WatchedOptions = {}): Promise<Watched> =>
  allOrNone((start) => startWatched(start, options));

async function startWatched(start: typeof startRedis, options: WatchedOptions): Promise<Watched> {
  const { replicas = 1, sentinels = 1, downAfterMs = 1_000, password, sentinelPassword } = options;
  const secured: Record<string, string> = password === undefined ? {} : { requirepass: password, masterauth: password };
  const master = await start({ settings: { ...replicated, ...secured } });
  const others = await Promise.all(
    Array.from({ length: replicas }, () =>
      start({
        settings: { ...replicated, ...secured, replicaof: `127.0.0.1 ${master.port}` },
      }),
    ),
  );
  const servers = [master, ...others];
  const lines = [
    `sentinel monitor ${masterName} 127.0.0.1 ${master.port} ${Math.floor(sentinels / 2) + 1}`,
    `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
    `sentinel failover-timeout ${masterName} 2000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${masterName} ${password}`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
  ];
  const watchers = await Promise.all(
    Array.from({ length: sentinels }, () => start({ sentinel: `${lines.join("\n")}\n` })),
  );
  const ask = <T>(sentinel: RedisServer, call: (client: Redis) => Promise<T>): Promise<T> =>
    askRedis(sentinel.port, call, sentinelPassword);
  await Promise.all(
    watchers.map((sentinel) =>
      eventually("the Sentinels know the replicas and each other", () =>
        ask(sentinel, async (client) => {
          const known = (await client.call("SENTINEL", "MASTER", masterName)) as string[];
          const numberOf = (name: string) => Number(known[known.indexOf(name) + 1]);
          if (numberOf("num-other-sentinels") !== sentinels - 1) return false;
          const listed = (await client.call("SENTINEL", "REPLICAS", masterName)) as string[][];
          const up = listed.filter((each) => each[each.indexOf("master-link-status") + 1] === "ok");
          return up.length === replicas;
        }),
      ),
    ),
  );
  const hosts = watchers.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const userInfo = password === undefined ? "" : `:${encodeURIComponent(password)}@`;
  const query = sentinelPassword === undefined ? "" : `?sentinel_password=${encodeURIComponent(sentinelPassword)}`;
  const askAny = async <T>(call: (client: Redis) => Promise<T>): Promise<T> =>
    Promise.any(watchers.map((sentinel) => ask(sentinel, call)));
  const queueOwner = async (): Promise<RedisServer> => {
    const address = await askAny((client) => client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName));
    const port = Number((address as string[])[1]);
    const found = servers.find((server) => server.port === port);
    if (found === undefined) throw new Error(`no server of ours has the port ${port}`);
    return found;
  };
  return {
    url: `redis+sentinel://${userInfo}${hosts}/${masterName}${query}`,
    servers,
    sentinels: watchers,
    queueOwner,
    isTakenOver: (from) => untilTakenOver(queueOwner, from),
    queueTraffic: async () => readTraffic(await queueOwner(), password),
    async isReplicated() {
      await eventually("the master has its replicas", async () => {
        const { port } = await queueOwner();
        const role = await askRedis(port, (client) => client.role(), password);
        return role[0] === "master" && (role[2] as unknown[]).length === replicas;
      });
    },
    async failOver() {
      const before = await queueOwner();
      await askAny((client) => client.call("SENTINEL", "FAILOVER", masterName));
      await eventually("the former master is a replica", () =>
        askRedis(before.port, async (client) => (await client.role())[0] === "slave", password),
      );
    },
    async destroy() {
      await Promise.all([...watchers, ...servers].map((server) => server.stop()));
    },
  };
}

/** Stops the started servers when a later one fails. */
async function allOrNone<T>(build: (start: typeof startRedis) => Promise<T>): Promise<T> {
  const servers: RedisServer[] = [];
  try {
    return await build(async (options) => {
      const server = await startRedis(options);
      servers.push(server);
      return server;
    });
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

async function untilTakenOver(queueOwner: () => Promise<RedisServer>, from: RedisServer): Promise<void> {
  await eventually("another server has the queue", async () => (await queueOwner()) !== from);
}

const readTraffic = ({ port }: RedisServer, password?: string): Promise<QueueTraffic> =>
  askRedis(
    port,
    async (client) => {
      const wakeUps = `${queueKey}:apply`;
      const added = Number(await client.get(`${wakeUps}:id`));
      const waiting = await client.llen(`${wakeUps}:wait`);
      const [, consumers] = /^blocked_clients:(\d+)/m.exec(await client.info("clients")) ?? [];
      return { added, waiting, consumers: Number(consumers) };
    },
    password,
  );

/** A Redis Cluster made by redis-cli, whose nodes agree when this resolves. Its URL names one node. */
export const startRedisCluster = (options: ClusterOptions = {}): Promise<ManyRedis> =>
  allOrNone((start) => startCluster(start, options));

interface ClusterOptions {
  masters?: number;
  /** Number for each master. */
  replicas?: number;
}

async function startCluster(
  start: typeof startRedis,
  { masters = 3, replicas = 0 }: ClusterOptions,
): Promise<ManyRedis> {
  const count = masters * (1 + replicas);
  const servers = await Promise.all(
    Array.from({ length: count }, async () =>
      start({
        port: await freeClusterPort(),
        settings: {
          ...replicated,
          "cluster-enabled": "yes",
          "cluster-node-timeout": "2000",
        },
      }),
    ),
  );
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  const sized = replicas === 0 ? [] : ["--cluster-replicas", String(replicas)];
  await promisify(execFile)("redis-cli", ["--cluster", "create", ...addresses, ...sized, "--cluster-yes"]);
  const isWhole = (server: RedisServer) =>
    askRedis(server.port, async (client) => {
      const info = await client.cluster("INFO");
      const shards = (await client.cluster("SLOTS")) as unknown[][];
      const perShard = shards.every((shard) => shard.length === 3 + replicas);
      return info.includes("cluster_state:ok") && shards.length === masters && perShard;
    });
  await Promise.all(servers.map((server) => eventually("the cluster is whole", () => isWhole(server))));
  const queueOwner = (): Promise<RedisServer> => {
    const isOwner = async (server: RedisServer): Promise<RedisServer> =>
      askRedis(server.port, async (client) => {
        await client.set(queueKey, "", "PX", 1);
        return server;
      });
    return Promise.any(servers.map(isOwner));
  };
  return {
    url: `redis+cluster://${addresses[0]}`,
    servers,
    queueOwner,
    isTakenOver: (from) => untilTakenOver(queueOwner, from),
    queueTraffic: async () => readTraffic(await queueOwner()),
    async destroy() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/** The nodes talk to each other on a port that is 10,000 higher. */
async function freeClusterPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (port <= 55_000) return port;
  }
}
