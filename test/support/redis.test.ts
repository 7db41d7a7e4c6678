import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { redisAvailable, type RedisServer, startRedis } from "./redis.ts";

describe.skipIf(!redisAvailable)("a redis-server for tests", () => {
  const servers: RedisServer[] = [];
  const start = async (options?: Parameters<typeof startRedis>[0]): Promise<RedisServer> => {
    const server = await startRedis(options);
    servers.push(server);
    return server;
  };
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  test("takes commands at its address, evicts nothing, and is empty after a flush", async () => {
    const server = await start();
    const client = new Redis(server.url);
    await client.set("a", "1");
    expect(await client.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
    await server.flush();
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
  });

  test("comes back empty on the same port after a crash", async () => {
    const first = await start();
    await first.kill9();
    await first.stop();
    const second = await start({ port: first.port });
    const client = new Redis(second.url);
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
  });

  test("says why it did not start", async () => {
    const { port } = await start();
    await expect(startRedis({ port })).rejects.toThrow(/Address already in use/);
  });
});
