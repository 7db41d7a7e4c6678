import { afterAll, beforeAll, expect, test } from "vitest";
import { pendingMigrations } from "../../src/platform/postgres/migrations.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { type OwnServer, startOwnServer } from "./own-server.ts";

let server: OwnServer;
beforeAll(async () => {
  server = await startOwnServer();
});
afterAll(() => server.destroy());

test("a server of one's own is migrated, can be killed, and comes back under the same URL", async () => {
  const { url } = server;
  const open = () => createDatabase({ url, poolMax: 1, applicationName: "own server" });
  const before = open();
  expect(await pendingMigrations(before)).toEqual([]);
  await before.raw("CREATE TABLE kept (id int)");
  await before.destroy();

  await server.kill();
  const meanwhile = open();
  await expect(meanwhile.raw("SELECT 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  await meanwhile.destroy();

  await server.restart();
  expect(server.url).toBe(url);
  const after = open();
  expect(await after("kept")).toEqual([]);
  await after.destroy();
});
