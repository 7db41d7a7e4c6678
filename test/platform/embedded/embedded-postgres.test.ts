import { spawn } from "node:child_process";
import { lstat, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../src/platform/embedded/embedded-postgres.ts";
import { UnreachableError } from "../../../src/platform/errors.ts";
import { createLog } from "../../../src/platform/log.ts";
import { commandLine } from "../../../src/platform/process-table.ts";
import { makeDataDir } from "../../support/data-directory.ts";
import { startHolder } from "../../support/holder.ts";
import { withServer } from "../../support/server-commands.ts";

const log = createLog({ level: "silent", name: "test" });
let dataDir: string;
let server: EmbeddedPostgres;

const start = () => startEmbeddedPostgres({ dataDir, log });
const inData = (name: string) => join(dataDir, "postgres", name);
const query = <T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> =>
  withServer(url, async (client) => (await client.query<T>(sql)).rows);
const isAlive = (pid: number) => commandLine(pid) !== null;

async function killServer(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await expect.poll(() => isAlive(pid), { interval: 5 }).toBe(false);
}

beforeAll(async () => {
  dataDir = await makeDataDir();
  server = await start();
});

afterAll(async () => {
  server = await start();
  await server.remove();
  await rm(dataDir, { recursive: true, force: true });
});

test("a data directory that cannot be made is named, with the setting", async () => {
  const file = join(dataDir, "a-file");
  await writeFile(file, "");
  for (const place of [file, join(file, "below"), "/proc/x"]) {
    const message = await startEmbeddedPostgres({ dataDir: place, log }).then(
      () => "started",
      (error: unknown) => String(error),
    );
    expect(message).toContain(place);
    expect(message).toMatch(/\(E[A-Z]+\)\. Set TALLYHOOK_DATA_DIR/);
  }
  await rm(file);
});

test("a fresh data directory becomes a durable server on loopback that sorts by code point", async () => {
  expect(server.attached).toBe(false);
  const [settings] = await query(
    server.url,
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
            current_setting('full_page_writes') AS pages, current_setting('listen_addresses') AS addresses,
            current_setting('unix_socket_directories') AS sockets, current_setting('TimeZone') AS zone,
            array(SELECT x FROM unnest(ARRAY['b', 'ä', 'B', 'a']) x ORDER BY x) AS sorted`,
  );
  expect(settings).toEqual({
    fsync: "on",
    commits: "on",
    pages: "on",
    addresses: "127.0.0.1",
    sockets: "",
    zone: "UTC",
    sorted: ["B", "a", "b", "ä"],
  });
});

test("it checkpoints rarely, and takes no more memory or disk for it than by default", async () => {
  const [settings] = await query(
    server.url,
    `SELECT current_setting('checkpoint_timeout') AS checkpoints, current_setting('max_wal_size') AS log,
            current_setting('shared_buffers') AS memory, current_setting('wal_compression') AS compression`,
  );
  expect(settings).toEqual({
    checkpoints: "15min",
    log: "1GB",
    memory: "128MB",
    // The build has pglz alone, which costs more than it saves.
    compression: "off",
  });
});

test("nobody gets in without the password, and nobody else can read it", async () => {
  const wrong = new URL(server.url);
  wrong.password = "wrong";
  await expect(query(wrong.href, "SELECT 1")).rejects.toMatchObject({ code: "28P01" });
  expect((await stat(inData("password"))).mode & 0o777).toBe(0o600);
  expect((await stat(inData("cluster"))).mode & 0o077).toBe(0);
  expect(await readFile(inData("server.log"), "utf8")).not.toContain(new URL(server.url).password);
});

test("the binaries run from a copy with the links and modes that they need", async () => {
  const [binaries] = (await readdir(inData(""))).filter((name) => name.startsWith("binaries-"));
  const lib = inData(join(binaries ?? "", "lib"));
  expect((await lstat(join(lib, "libpq.so.5"))).isSymbolicLink()).toBe(true);
  expect((await stat(inData(join(binaries ?? "", "bin/postgres")))).mode & 0o777).toBe(0o755);
});

test("a second start attaches, and the server runs until the last user has stopped", async () => {
  const second = await start();
  expect(second).toMatchObject({ attached: true, pid: server.pid, url: server.url });
  await server.stop();
  await server.stop();
  expect(await query(second.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  await second.stop();
  expect(isAlive(second.pid)).toBe(false);
});

test("after a stop the next start has the same data on the same port", async () => {
  server = await start();
  await query(server.url, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)");
  const { port, url } = server;
  await server.stop();
  server = await start();
  expect(server).toMatchObject({ attached: false, port, url });
  expect(await query(server.url, "SELECT id FROM kept")).toEqual([{ id: 1 }]);
});

test("after kill -9 of the server the next start recovers what was committed", async () => {
  const client = new pg.Client({ connectionString: server.url });
  const lost = new Promise<Error>((resolve) => client.on("error", resolve));
  await client.connect();
  await client.query("INSERT INTO kept VALUES (2)");
  await client.query("BEGIN; INSERT INTO kept VALUES (3)");
  await killServer(server.pid);
  await lost;
  const restarted = await start();
  await server.stop();
  server = restarted;
  expect(server.attached).toBe(false);
  expect(await query(server.url, "SELECT id FROM kept ORDER BY id")).toEqual([{ id: 1 }, { id: 2 }]);
});

test("a postmaster.pid whose process id another program has by now does not stop the start", async () => {
  await killServer(server.pid);
  const { uid, gid } = await stat(inData("cluster"));
  const stranger = spawn("sleep", ["60"], process.getuid?.() === 0 ? { uid, gid } : {});
  const path = join(inData("cluster"), "postmaster.pid");
  const lines = (await readFile(path, "utf8")).split("\n");
  await writeFile(path, [stranger.pid, ...lines.slice(1)].join("\n"));
  const restarted = await start();
  await server.stop();
  server = restarted;
  expect(server).toMatchObject({ attached: false });
  expect(isAlive(stranger.pid ?? 0)).toBe(true);
  stranger.kill();
});

test("the server outlives a user that was killed, and the next user may stop it", async () => {
  await server.stop();
  const holder = await startHolder(dataDir);
  await holder.kill();
  expect(isAlive(holder.pid)).toBe(true);
  server = await start();
  expect(server).toMatchObject({ attached: true, pid: holder.pid });
  await server.stop();
  expect(isAlive(holder.pid)).toBe(false);
});

test("Ctrl-C reaches the application and not the server, which is there until the application stops it", async () => {
  const holder = await startHolder(dataDir);
  holder.signalGroup("SIGINT");
  expect(await query(holder.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  expect(isAlive(holder.pid)).toBe(true);
  await holder.stop();
  expect(isAlive(holder.pid)).toBe(false);
});

test("data of another major version is refused with words, not touched", async () => {
  const path = join(inData("cluster"), "PG_VERSION");
  const version = await readFile(path, "utf8");
  await writeFile(path, "17\n");
  await expect(start()).rejects.toThrow(/was made by version 17/);
  await writeFile(path, version);
});

test("data without its password is refused with words", async () => {
  await rename(inData("password"), inData("password.away"));
  await expect(start()).rejects.toThrow(/password of the embedded PostgreSQL is missing/);
  await rename(inData("password.away"), inData("password"));
});

test("a server that does not start is reported with its last words", async () => {
  const failure = await startEmbeddedPostgres({
    dataDir,
    log,
    settings: { shared_buffers: "plenty" },
  }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UnreachableError);
  expect(String(failure)).toContain("server.log");
  expect(String((failure as Error).cause)).toContain("shared_buffers");
});
