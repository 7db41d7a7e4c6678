import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readRedisUrl } from "../../src/core/queue/redis-url.ts";
import { anyText } from "../support/any-text.ts";

const objectKeys = <T extends object>(of: T) => Object.keys(of) as (keyof T)[];
const none = { username: null, password: null };

describe("a Redis URL", () => {
  test.each([
    "redis://host",
    "redis://host:6379",
    "redis://:secret@host:6379/3",
    "rediss://user:se%2Fcret@host:6380?family=6",
    "redis://[::1]:6379/",
  ])("%s is one server", (url) => {
    expect(readRedisUrl(url)).toEqual({ deployment: { kind: "server", url } });
  });

  test.each([
    ["redis://h1:7001,h2:7002,h3:7003"],
    ["redis+cluster://h1:7001,h2:7002,h3:7003"],
    ["redis+cluster://h1:7001,h2:7002,h3:7003/0"],
  ])("%s is a cluster", (url) => {
    expect(readRedisUrl(url)).toEqual({
      deployment: {
        kind: "cluster",
        nodes: [7001, 7002, 7003].map((port, n) => ({ host: `h${n + 1}`, port })),
        credentials: none,
        isEncrypted: false,
      },
    });
  });

  test("names a cluster by one node, encrypted, with a user", () => {
    expect(readRedisUrl("rediss+cluster://app:p%40ss,word@cache.example.com")).toEqual({
      deployment: {
        kind: "cluster",
        nodes: [{ host: "cache.example.com", port: 6379 }],
        credentials: { username: "app", password: "p@ss,word" },
        isEncrypted: true,
      },
    });
  });

  test("names a master by its Sentinels, which may have a password of their own", () => {
    expect(
      readRedisUrl(
        "rediss+sentinel://:da@ta@s_1,[::1],10.0.0.1/my-master/2?sentinel_username=w&sentinel_password=a%26b",
      ),
    ).toEqual({
      deployment: {
        kind: "sentinel",
        sentinels: ["s_1", "::1", "10.0.0.1"].map((host) => ({ host, port: 26379 })),
        masterName: "my-master",
        database: 2,
        credentials: { username: null, password: "da@ta" },
        sentinelCredentials: { username: "w", password: "a&b" },
        isEncrypted: true,
      },
    });
  });

  test.each([
    ["http://hunter2@h", "does not begin with redis://"],
    ["redis+sentinels://h/m", "does not begin with redis://"],
    ["REDIS://h,h", "does not begin with redis://"],
    ["redis:h", "does not begin with redis://"],
    ["redis://h/hunter2", "not the number of a database"],
    ["redis://h:1:2", "is not a URL"],
    ["redis://", "has a host that is not"],
    ["redis:///0", "has a host that is not"],
    ["redis://h%", "has a host that is not"],
    ["redis://h:0", "has a port"],
    ["redis://:hunter2#@h1,h2", "not percent-encoded"],
    ["redis+sentinel://:hunt/er2@s1,s2/m", "not percent-encoded"],
    ["redis+sentinel://:hunt?er2@s1,s2/m", "not percent-encoded"],
    ["redis://h1,h2/3", "a Redis Cluster has only the database 0"],
    ["redis+cluster://h1/mymaster", "a Redis Cluster has only the database 0"],
    ["redis+cluster://h1?family=6", "has parameters"],
    ["redis+sentinel://s1,s2", "names no master"],
    ["redis+sentinel://s1,s2/", "names no master"],
    ["redis+sentinel://s1/m/x", "not the name of a master"],
    ["redis+sentinel://s1/m/1/2", "not the name of a master"],
    ["redis+sentinel://s1/m%20n", "not the name of a master"],
    ["redis+sentinel://s1/m?password=hunter2", "a parameter other than"],
    ["redis+sentinel://s1/m?sentinel_password=a&sentinel_password=b", "a parameter other than"],
    ["redis+sentinel://s1/m?sentinel_username=a", "without a sentinel_password"],
    ["redis+sentinel://hunter2@s1/m", "a user name without a password"],
    ["redis+sentinel://:hunter2%@s1/m", "a % in it"],
    ["redis+sentinel://s1:26379,s2/m", "a port behind some hosts"],
    ["redis://h1,h2:6379", "a port behind some hosts"],
    ["redis://h1,", "has a host that is not"],
    ["redis+cluster://", "has a host that is not"],
    ["redis+cluster://h1, h2", "has a host that is not"],
    ["redis+cluster://::1", "has a host that is not"],
    ["redis+cluster://[::1::2]", "has a host that is not"],
    ["redis+cluster://-h", "has a host that is not"],
    ["redis+cluster://h:0", "has a port"],
    ["redis+cluster://h:65536", "has a port"],
  ])("%s is refused: %s", (url, why) => {
    const { problem } = readRedisUrl(url);
    expect(problem).toContain(why);
    expect(problem).not.toMatch(/hunt|er2/);
  });
});

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}[a-z0-9]$/);
const host = fc.oneof(word, fc.ipV4(), fc.ipV6());
const secret = anyText({ minLength: 1 }).filter((text) => text.isWellFormed());
const written = (address: { host: string; port: number }): string =>
  `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;

test("what was written is read again, whatever the names, ports and passwords", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ host, port: fc.integer({ min: 1, max: 65_535 }) }), { minLength: 1 }),
      fc.option(fc.record({ username: fc.option(secret), password: secret })),
      fc.record({ name: word, database: fc.nat(15), password: fc.option(secret) }),
      fc.boolean(),
      (addresses, given, master, isEncrypted) => {
        const encoded = (text: string | null) => encodeURIComponent(text ?? "");
        const userInfo = given === null ? "" : `${encoded(given.username)}:${encoded(given.password)}@`;
        const hosts = addresses.map(written).join(",");
        const s = isEncrypted ? "s" : "";
        const credentials = given ?? none;
        expect(readRedisUrl(`redis${s}+cluster://${userInfo}${hosts}`)).toEqual({
          deployment: { kind: "cluster", nodes: addresses, credentials, isEncrypted },
        });
        const asked = master.password === null ? "" : `?sentinel_password=${encoded(master.password)}`;
        const path = `/${master.name}/${master.database}`;
        expect(readRedisUrl(`redis${s}+sentinel://${userInfo}${hosts}${path}${asked}`)).toEqual({
          deployment: {
            kind: "sentinel",
            sentinels: addresses,
            masterName: master.name,
            database: master.database,
            credentials,
            sentinelCredentials: { username: null, password: master.password },
            isEncrypted,
          },
        });
      },
    ),
    { numRuns: 200 },
  );
});

test("the scheme decides what any text is, and what is wrong with it shows nothing of it", () => {
  const noise = fc.string({ unit: fc.constantFrom(...Array.from("::/@?#,%[].-_s0219m")) });
  const kinds = { redis: null, "redis+cluster": "cluster", "redis+sentinel": "sentinel" };
  fc.assert(
    fc.property(fc.constantFrom(...objectKeys(kinds)), noise, (scheme, rest) => {
      const { deployment, problem } = readRedisUrl(`${scheme}://${rest}`);
      if (deployment === undefined) {
        if (rest.length > 3) expect(problem).not.toContain(rest);
      } else if (deployment.kind === "server") {
        expect(kinds[scheme]).toBeNull();
      } else if (deployment.kind === "cluster") {
        expect(kinds[scheme] ?? "cluster").toBe("cluster");
        if (kinds[scheme] === null) expect(deployment.nodes.length).toBeGreaterThan(1);
      } else {
        expect(kinds[scheme]).toBe("sentinel");
      }
    }),
    { numRuns: 500 },
  );
});
