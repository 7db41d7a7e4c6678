import { isIPv6 } from "node:net";

export interface RedisAddress {
  host: string;
  port: number;
}

/** Percent-decoded. Null: none. */
export interface RedisCredentials {
  username: string | null;
  password: string | null;
}

/** A Redis deployment as a URL names it. */
export type RedisDeployment =
  | { kind: "server"; url: string }
  | {
      kind: "cluster";
      /** Some of its nodes; they name the others. */
      nodes: RedisAddress[];
      credentials: RedisCredentials;
      isEncrypted: boolean;
    }
  | {
      kind: "sentinel";
      sentinels: RedisAddress[];
      masterName: string;
      database: number;
      /** Credentials of the servers. */
      credentials: RedisCredentials;
      sentinelCredentials: RedisCredentials;
      isEncrypted: boolean;
    };

/** `problem` completes "REDIS_URL …", and never shows the text. */
export type ReadRedisUrl = { deployment: RedisDeployment; problem?: never } | { deployment?: never; problem: string };

const schemes: Readonly<Record<string, RedisDeployment["kind"]>> = {
  redis: "server",
  rediss: "server",
  "redis+cluster": "cluster",
  "rediss+cluster": "cluster",
  "redis+sentinel": "sentinel",
  "rediss+sentinel": "sentinel",
};

const cut = "has a # / ? or @ in it that is not percent-encoded (%23 %2F %3F %40)";
const unreadableHost = "has a host that is not a name, an IPv4 address or an [IPv6 address]";

/**
 * Reads a Redis URL. The scheme decides the kind: `redis` one server, `redis+cluster` a Redis Cluster by any of its
 * nodes, `redis+sentinel` the master of a name that Sentinels watch. `rediss…` encrypts. Several hosts after `redis://`
 * can only be a cluster.
 */
export function readRedisUrl(text: string): ReadRedisUrl {
  const parts = /^([a-z+]+):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(text);
  const named = schemes[parts?.[1] ?? ""];
  if (parts === null || named === undefined) {
    return {
      problem: "does not begin with redis://, rediss://, redis+cluster:// or redis+sentinel://",
    };
  }
  const [, scheme = "", authority = "", path = "", query = "", fragment] = parts;
  if (fragment !== undefined || path.includes("@") || query.includes("@")) return { problem: cut };
  const at = authority.lastIndexOf("@");
  const hosts = authority.slice(at + 1).split(",");
  const kind = named === "server" && hosts.length > 1 ? "cluster" : named;
  if (kind === "server" && !URL.canParse(text)) return { problem: "is not a URL" };
  const addresses = readAddresses(hosts, kind === "sentinel" ? 26_379 : 6_379);
  if (typeof addresses === "string") return { problem: addresses };
  if (kind === "server") return readServer(text, path);

  const credentials = readCredentials(authority.slice(0, Math.max(at, 0)));
  const asked = new URLSearchParams(query);
  if (typeof credentials === "string") return { problem: credentials };
  const isEncrypted = scheme.startsWith("rediss");
  return kind === "cluster"
    ? readCluster({ nodes: addresses, credentials, isEncrypted }, path, asked)
    : readSentinel({ sentinels: addresses, credentials, isEncrypted }, path, asked);
}

/** The driver reads the rest of such a URL, with all parameters that it knows. */
function readServer(url: string, path: string): ReadRedisUrl {
  if (!/^\/?\d{0,5}$/.test(path)) {
    return {
      problem: "has a path that is not the number of a database (the name of a master goes with redis+sentinel://)",
    };
  }
  return { deployment: { kind: "server", url } };
}

function readCluster(
  cluster: Omit<Extract<RedisDeployment, { kind: "cluster" }>, "kind">,
  path: string,
  asked: URLSearchParams,
): ReadRedisUrl {
  if (!/^\/?0?$/.test(path)) {
    return { problem: "has a path, and a Redis Cluster has only the database 0" };
  }
  if (asked.size > 0) return { problem: "has parameters, and a Redis Cluster takes none here" };
  return { deployment: { kind: "cluster", ...cluster } };
}

const sentinelParameters = ["sentinel_username", "sentinel_password"];

function readSentinel(
  watched: Pick<Extract<RedisDeployment, { kind: "sentinel" }>, "sentinels" | "credentials" | "isEncrypted">,
  path: string,
  asked: URLSearchParams,
): ReadRedisUrl {
  // The characters that Sentinel takes in a name.
  const named = /^\/([\w.-]+)(?:\/(\d{1,5})?)?$/.exec(path);
  if (path === "" || path === "/") {
    return { problem: "names no master after the Sentinels, such as /mymaster" };
  }
  if (named === null) {
    return { problem: "has a path that is not the name of a master and the number of a database" };
  }
  const names = [...asked.keys()];
  const isKnown = names.every((name) => sentinelParameters.includes(name));
  if (!isKnown || new Set(names).size < names.length) {
    return { problem: `has a parameter other than one ${sentinelParameters.join(" and one ")}` };
  }
  const [, masterName = "", database = "0"] = named;
  const [username = null, password = null] = sentinelParameters.map((name) => asked.get(name));
  if (username !== null && password === null) {
    return { problem: "has a sentinel_username without a sentinel_password" };
  }
  return {
    deployment: {
      kind: "sentinel",
      ...watched,
      masterName,
      database: Number(database),
      sentinelCredentials: { username, password },
    },
  };
}

/** The addresses, or their fault. */
function readAddresses(hosts: readonly string[], defaultPort: number): RedisAddress[] | string {
  const found: RedisAddress[] = [];
  let withPort = 0;
  for (const text of hosts) {
    const parts = /^(?:\[([\da-f:.]+)\]|([a-z\d_](?:[\w.-]*\w)?))(?::(\d{1,5}))?$/i.exec(text);
    const host = parts?.[1] ?? parts?.[2];
    if (host === undefined || (parts?.[1] !== undefined && !isIPv6(host))) return unreadableHost;
    const port = Number(parts?.[3] ?? defaultPort);
    if (port === 0 || port > 65_535) return "has a port that is not a number from 1 to 65535";
    if (parts?.[3] !== undefined) withPort++;
    found.push({ host, port });
  }
  return withPort > 0 && withPort < hosts.length ? "has a port behind some hosts and none behind others" : found;
}

/** The credentials, or their fault. */
function readCredentials(userInfo: string): RedisCredentials | string {
  const colon = userInfo.indexOf(":");
  const [username, password] = colon < 0 ? [userInfo, ""] : [userInfo.slice(0, colon), userInfo.slice(colon + 1)];
  if (username !== "" && password === "") return "has a user name without a password";
  try {
    return {
      username: username === "" ? null : decodeURIComponent(username),
      password: password === "" ? null : decodeURIComponent(password),
    };
  } catch {
    return "has a % in it that is not percent-encoded (%25)";
  }
}
