import { describe, expect, test } from "vitest";
import { judgeRedis } from "../../../../src/main/cli/doctor/redis.ts";
import type { RedisFacts, RedisServerFacts, SentinelFacts } from "../../../../src/core/queue/examine-redis.ts";

const server: RedisServerFacts = {
  version: "7.0.15",
  mode: "standalone",
  role: "master",
  replicas: 1,
  memoryPolicy: "noeviction",
  usedBytes: 1_000,
  maxBytes: 0,
  keepsLog: true,
  writesSnapshots: false,
  canSave: true,
};
const one: RedisFacts = {
  kind: "server",
  servers: [server],
  isRefused: false,
  cluster: null,
  sentinels: [],
};
const node = { ...server, mode: "cluster" };
const cluster: RedisFacts = {
  kind: "cluster",
  servers: [node, node, node],
  isRefused: false,
  cluster: { isUp: true, slotsServed: 16_384 },
  sentinels: [],
};
const sentinel: SentinelFacts = { error: null, hasQuorum: true, replicas: 2 };
const watched: RedisFacts = { ...one, kind: "sentinel", sentinels: [sentinel, sentinel, sentinel] };

const lines = (facts: RedisFacts) =>
  judgeRedis(facts).map(({ check, status, detail }) => `${status} ${check}: ${detail}`);

describe("what doctor says of a Redis in order", () => {
  test("that is one server", () => {
    expect(lines(one)).toEqual([
      "ok redis: Redis 7.0.15, one server: 1 master reached",
      "ok redis memory: maxmemory-policy is noeviction",
      "ok redis persistence: an append-only file",
    ]);
  });

  test("that is a cluster", () => {
    expect(lines(cluster)).toEqual([
      "ok redis: Redis 7.0.15, a Redis Cluster: 3 masters reached",
      "ok redis memory: maxmemory-policy is noeviction",
      "ok redis persistence: an append-only file",
      "ok redis cluster: all 16384 slots are served, each with a replica",
    ]);
  });

  test("that Sentinels watch", () => {
    expect(lines(watched).slice(-1)).toEqual(["ok redis sentinel: the quorum is reached; 3 Sentinels, 2 replicas"]);
  });
});

const changed = (change: Partial<RedisServerFacts>): RedisFacts => ({
  ...one,
  servers: [{ ...server, ...change }],
});
const away: SentinelFacts = { error: "ECONNREFUSED", hasQuorum: false, replicas: 0 };

describe("what doctor says of a Redis that", () => {
  test.each<[string, RedisFacts, string]>([
    ["is a replica", changed({ role: "slave" }), "failed redis: .* a replica reached, which takes"],
    ["is a Sentinel", changed({ mode: "sentinel" }), "failed redis: REDIS_URL names a Sentinel"],
    ["is a node", changed({ mode: "cluster" }), "failed redis: REDIS_URL names one node"],
    ["evicts", changed({ memoryPolicy: "allkeys-lru" }), "warning redis memory: maxmemory-policy is allkeys-lru"],
    ["is nearly full", changed({ maxBytes: 1_050 }), "warning redis memory: more than 90 %"],
    ["cannot save", changed({ canSave: false }), "warning redis persistence: Redis could not"],
    ["keeps nothing", changed({ keepsLog: false }), "ok redis persistence: none: after a restart"],
    ["keeps snapshots", changed({ keepsLog: false, writesSnapshots: true }), "ok redis persistence: snapshots: after"],
    [
      "does not say what it keeps",
      changed({ keepsLog: false, writesSnapshots: null }),
      "ok redis persistence: no append-only file; snapshots are not shown",
    ],
    [
      "lacks slots",
      { ...cluster, cluster: { isUp: false, slotsServed: 10_923 } },
      "failed redis cluster: 10923 of 16384 slots are served",
    ],
    [
      "has masters alone",
      { ...cluster, servers: [node, { ...node, replicas: 0 }] },
      "warning redis cluster: 1 of 2 masters have no replica",
    ],
    ["is no cluster that answers", { ...cluster, servers: [], cluster: null }, "failed redis cluster: no node answers"],
    [
      "no Sentinel answers for",
      { ...watched, sentinels: [away, away] },
      "failed redis sentinel: no Sentinel answers \\(ECONNREFUSED\\)",
    ],
    [
      "the Sentinels could not replace",
      { ...watched, sentinels: [{ ...sentinel, hasQuorum: false }, away] },
      "failed redis sentinel: .* cannot agree",
    ],
    [
      "has no replica",
      { ...watched, sentinels: [{ ...sentinel, replicas: 0 }] },
      "failed redis sentinel: no replica is up",
    ],
    [
      "lacks a Sentinel",
      { ...watched, sentinels: [sentinel, sentinel, away] },
      "warning redis sentinel: 1 of 3 Sentinels in REDIS_URL do not answer \\(ECONNREFUSED\\)",
    ],
  ])("%s", (_, facts, line) => {
    expect(lines(facts)).toContainEqual(expect.stringMatching(new RegExp(`^${line}`)) as string);
    const remedies = judgeRedis(facts).filter(({ status }) => status !== "ok");
    expect(remedies.every(({ remedy }) => remedy !== null)).toBe(true);
  });
});

test("a user that may not ask for it is told what is not looked at", () => {
  const [said, ...others] = lines({ ...one, servers: [], isRefused: true });
  expect(others).toEqual([]);
  expect(said).toContain("skipped redis: the user in REDIS_URL may not use INFO");
});
