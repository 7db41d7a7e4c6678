import { counted } from "../../../platform/readable-text.ts";
import type { RedisFacts, RedisServerFacts } from "../../../core/queue/examine-redis.ts";
import { type CheckResult, failed, ok, skipped, warning } from "../../../app/check-result.ts";

const kinds = {
  server: "one server",
  cluster: "a Redis Cluster",
  sentinel: "a master that Sentinels watch",
} as const;

/** The findings about the queue's Redis. */
export function judgeRedis(facts: RedisFacts): CheckResult[] {
  return [
    ...(facts.isRefused
      ? [
          skipped(
            "redis",
            "the user in REDIS_URL may not use INFO, which no job needs: whether it is a master with " +
              "maxmemory-policy noeviction and room on its disk has to be checked by hand",
          ),
        ]
      : []),
    ...(facts.servers.length === 0 ? [] : judgeServers(facts)),
    ...(facts.kind === "cluster" && !facts.isRefused ? judgeCluster(facts) : []),
    ...(facts.kind === "sentinel" ? judgeSentinels(facts) : []),
  ];
}

function judgeServers({ kind, servers }: RedisFacts): CheckResult[] {
  const check = "redis";
  const [first] = servers;
  if (first?.mode === "sentinel") {
    return [
      failed(
        check,
        "REDIS_URL names a Sentinel as the server",
        "write redis+sentinel://host1:26379,host2:26379/<name of the master>",
      ),
    ];
  }
  if (kind === "server" && first?.mode === "cluster") {
    return [
      failed(
        check,
        "REDIS_URL names one node of a Redis Cluster, which has the queue only while the slot is its own",
        "write redis+cluster:// and some of its nodes",
      ),
    ];
  }
  const isReadOnly = servers.some(({ role }) => role !== "master");
  const roles = isReadOnly ? "a replica" : counted(servers.length, "master", "masters");
  const versions = [...new Set(servers.map(({ version }) => version))].join(" and ");
  const shown = `Redis ${versions}, ${kinds[kind]}: ${roles} reached`;
  return [
    isReadOnly
      ? failed(check, `${shown}, which takes no jobs`, "name the master, or redis+sentinel:// and its Sentinels")
      : ok(check, shown),
    judgeMemory(servers),
    judgePersistence(servers),
  ];
}

function judgeMemory(servers: readonly RedisServerFacts[]): CheckResult {
  const check = "redis memory";
  const policies = new Set(servers.map(({ memoryPolicy }) => memoryPolicy));
  const wrong = [...policies].filter((policy) => policy !== "noeviction");
  if (wrong.length > 0) {
    return warning(
      check,
      `maxmemory-policy is ${wrong.join(" and ")}: a Redis that is full silently drops jobs and schedules`,
      "set maxmemory-policy noeviction",
    );
  }
  const isNearlyFull = servers.some(({ usedBytes, maxBytes }) => maxBytes > 0 && usedBytes > 0.9 * maxBytes);
  return isNearlyFull
    ? warning(check, "more than 90 % of maxmemory is used", "raise maxmemory; a full Redis refuses jobs")
    : ok(check, "maxmemory-policy is noeviction");
}

function judgePersistence(servers: readonly RedisServerFacts[]): CheckResult {
  const check = "redis persistence";
  if (servers.some(({ canSave }) => !canSave)) {
    return warning(
      check,
      "Redis could not write to its disk the last time, and may refuse jobs for it",
      "check free space and permissions of its directory, and read its log",
    );
  }
  if (servers.every(({ keepsLog }) => keepsLog)) return ok(check, "an append-only file");
  const snapshots = servers.map(({ writesSnapshots }) => writesSnapshots);
  if (snapshots.includes(null)) return ok(check, "no append-only file; snapshots are not shown");
  return snapshots.includes(false)
    ? ok(check, "none: after a restart the relay brings back what waited, within seconds")
    : ok(check, "snapshots: after a restart the relay brings back what is younger, within seconds");
}

const allSlots = 16_384;

function judgeCluster({ cluster, servers }: RedisFacts): CheckResult[] {
  const check = "redis cluster";
  const restored = "start the nodes that are down, or give their slots to others";
  if (cluster === null) return [failed(check, "no node answers", "check the nodes in REDIS_URL")];
  if (!cluster.isUp || cluster.slotsServed < allSlots) {
    return [failed(check, `${cluster.slotsServed} of ${allSlots} slots are served`, restored)];
  }
  const alone = servers.filter(({ replicas }) => replicas === 0).length;
  return [
    alone === 0
      ? ok(check, `all ${allSlots} slots are served, each with a replica`)
      : warning(
          check,
          `${alone} of ${servers.length} masters have no replica, so nothing can take over their slots`,
          "add a replica to each master",
        ),
  ];
}

function judgeSentinels({ sentinels }: RedisFacts): CheckResult[] {
  const check = "redis sentinel";
  const answering = sentinels.filter(({ error }) => error === null);
  const errors = [...new Set(sentinels.flatMap(({ error }) => error ?? []))].join(", ");
  if (answering.length === 0) {
    return [
      failed(
        check,
        `no Sentinel answers (${errors})`,
        "check the hosts in REDIS_URL, the name of the master, and sentinel_password",
      ),
    ];
  }
  if (!answering.every(({ hasQuorum }) => hasQuorum)) {
    return [
      failed(
        check,
        "the Sentinels that are up cannot agree on another master",
        "start the Sentinels that are down, or lower the quorum",
      ),
    ];
  }
  if (answering.some(({ replicas }) => replicas === 0)) {
    return [failed(check, "no replica is up, so that nothing can take over", "start a replica of the master")];
  }
  const away = sentinels.length - answering.length;
  return [
    away > 0
      ? warning(
          check,
          `${away} of ${sentinels.length} Sentinels in REDIS_URL do not answer (${errors})`,
          "start them, or name others",
        )
      : ok(
          check,
          `the quorum is reached; ${counted(sentinels.length, "Sentinel", "Sentinels")}, ` +
            counted(Math.min(...answering.map(({ replicas }) => replicas)), "replica", "replicas"),
        ),
  ];
}
