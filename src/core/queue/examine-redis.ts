import type { Redis } from "ioredis";
import { type RedisClient, createRedisClient, sentinelClient } from "./redis-client.ts";
import { type RedisDeployment, readRedisUrl } from "./redis-url.ts";
import { onDemand } from "../../platform/on-demand.ts";

/** A server's facts about itself. */
export interface RedisServerFacts {
  version: string;
  /** `standalone`, `cluster` or `sentinel`. */
  mode: string;
  /** `master` or `slave`. */
  role: string;
  /** Number of connected replicas of a master. */
  replicas: number;
  memoryPolicy: string;
  usedBytes: number;
  /** 0: no limit. */
  maxBytes: number;
  keepsLog: boolean;
  /** Null: unknown. */
  writesSnapshots: boolean | null;
  canSave: boolean;
}

export interface SentinelFacts {
  /** The beginning of the error that the server answered with, if it did. */
  error: string | null;
  hasQuorum: boolean;
  /** Replicas that are up, as this Sentinel sees them. */
  replicas: number;
}

export interface RedisFacts {
  kind: RedisDeployment["kind"];
  /** The masters that were reached: one, or all of a cluster. */
  servers: RedisServerFacts[];
  /** They answer, and the user of the URL may not ask them about themselves. */
  isRefused: boolean;
  /** Null: not a cluster, or none of its nodes answered. */
  cluster: { isUp: boolean; slotsServed: number } | null;
  sentinels: SentinelFacts[];
}

const timeoutMs = 4_000;

/** Reads the facts of the servers behind a Redis URL. Never throws for one that does not answer; changes nothing. */
export async function examineRedis(url: string): Promise<RedisFacts> {
  const { deployment } = readRedisUrl(url);
  if (deployment === undefined) throw new Error("the URL of Redis is not one");
  const client = createRedisClient(url, "producer");
  let refusal = "";
  try {
    const [asked, sentinels] = await Promise.all([
      inTime(askServers(client)).catch((error: unknown) => {
        refusal = errorWord(error);
        return null;
      }),
      deployment.kind === "sentinel" ? Promise.all(askSentinels(deployment)) : [],
    ]);
    return {
      kind: deployment.kind,
      servers: asked?.servers ?? [],
      isRefused: refusal === "NOPERM",
      cluster: asked?.cluster ?? null,
      sentinels,
    };
  } finally {
    client.disconnect();
  }
}

async function askServers(client: RedisClient): Promise<Pick<RedisFacts, "servers" | "cluster">> {
  if (client instanceof onDemand.ioredis.Redis) return { servers: [await askServer(client)], cluster: null };
  const fields = fieldsOf(await client.cluster("INFO"));
  return {
    servers: await Promise.all(client.nodes("master").map(askServer)),
    cluster: {
      isUp: fields.get("cluster_state") === "ok",
      slotsServed: Number(fields.get("cluster_slots_ok")),
    },
  };
}

async function askServer(server: Redis): Promise<RedisServerFacts> {
  const fields = fieldsOf(await server.info());
  // Hosted servers often refuse this.
  const save = await server.config("GET", "save").catch(() => null);
  const text = (name: string): string => fields.get(name) ?? "";
  return {
    version: text("redis_version"),
    mode: text("redis_mode"),
    role: text("role"),
    replicas: Number(text("connected_slaves")),
    memoryPolicy: text("maxmemory_policy"),
    usedBytes: Number(text("used_memory")),
    maxBytes: Number(text("maxmemory")),
    keepsLog: text("aof_enabled") === "1",
    writesSnapshots: Array.isArray(save) && save.length > 1 ? save[1] !== "" : null,
    canSave: text("rdb_last_bgsave_status") !== "err" && text("aof_last_write_status") !== "err",
  };
}

function askSentinels(deployment: Extract<RedisDeployment, { kind: "sentinel" }>): Promise<SentinelFacts>[] {
  return deployment.sentinels.map(async (address) => {
    const sentinel = sentinelClient(deployment, address);
    // For a refused password, the command only reports that the connection is closed.
    let refusal: unknown;
    sentinel.once("error", (error) => (refusal = error));
    try {
      return await inTime(askSentinel(sentinel, deployment.masterName));
    } catch (error) {
      return { error: errorWord(refusal ?? error), hasQuorum: false, replicas: 0 };
    } finally {
      sentinel.disconnect();
    }
  });
}

async function askSentinel(sentinel: Redis, masterName: string): Promise<SentinelFacts> {
  await sentinel.connect();
  const replicas = (await sentinel.call("SENTINEL", "REPLICAS", masterName)) as string[][];
  const hasQuorum = await sentinel.call("SENTINEL", "CKQUORUM", masterName).then(
    () => true,
    (error: unknown) => {
      if (errorWord(error) === "NOQUORUM") return false;
      throw error;
    },
  );
  const isUp = (replica: string[]): boolean =>
    !/down|disconnected/.test(replica[replica.indexOf("flags") + 1] ?? "down");
  return { error: null, hasQuorum, replicas: replicas.filter(isUp).length };
}

/** The word by which a server, or the operating system, names an error. Its text may hold secrets. */
function errorWord(error: unknown): string {
  const { code, message = "" } = error as { code?: unknown; message?: string };
  return typeof code === "string" ? code : (/^[A-Z]+\b/.exec(message)?.[0] ?? "no answer");
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map(
    info.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );

async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), timeoutMs);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
