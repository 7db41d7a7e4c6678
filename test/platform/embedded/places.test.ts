import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { installBinaries } from "../../../src/platform/embedded/cluster.ts";
import { startEmbeddedPostgres } from "../../../src/platform/embedded/embedded-postgres.ts";
import { type ServerUser, canRead, prepareBase } from "../../../src/platform/embedded/place.ts";
import { createLog } from "../../../src/platform/log.ts";
import { makeDataDir } from "../../support/data-directory.ts";
import { startHolder } from "../../support/holder.ts";
import { projectRoot } from "../../support/project-root.ts";
import { withServer } from "../../support/server-commands.ts";

const log = createLog({ level: "silent", name: "test" });
const isRoot = process.getuid?.() === 0;
/** An id that no account has need of: the tests' user is not the one that root would pick. */
const user: ServerUser = { uid: 1, gid: 1, name: "daemon" };
const userCanRun = isRoot && (await canRead(user, projectRoot)) && (await canRead(user, dirname(process.execPath)));

const made: string[] = [];
afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true, force: true });
});

async function dataDirectory(): Promise<string> {
  const directory = await makeDataDir();
  made.push(directory);
  return directory;
}

test("of two first starts at once one makes the server and the other attaches to it", async () => {
  const dataDir = await dataDirectory();
  const holders = await Promise.all([startHolder(dataDir), startHolder(dataDir)]);
  expect(new Set(holders.map(({ attached }) => attached))).toEqual(new Set([false, true]));
  expect(new Set(holders.map(({ url }) => url)).size).toBe(1);
  await Promise.all(holders.map((holder) => holder.stop()));
});

test.runIf(isRoot)(
  "root under a directory that nobody else may enter keeps the data where it can be read, and finds it again",
  async () => {
    const hidden = await mkdtemp(join(tmpdir(), "tallyhook-hidden-"));
    made.push(hidden);
    await chmod(hidden, 0o700);
    const dataDir = join(hidden, ".data");

    const first = await startEmbeddedPostgres({ dataDir, log });
    const location = (await readFile(join(dataDir, "postgres", "location"), "utf8")).trim();
    await withServer(first.url, (client) => client.query("CREATE TABLE kept (id int)"));
    await first.stop();
    const second = await startEmbeddedPostgres({ dataDir, log });
    await withServer(second.url, (client) => client.query("SELECT FROM kept"));

    expect(location).toMatch(/^\/var\/lib\/tallyhook\/tallyhook-hidden-\w+-[0-9a-f]{12}$/);
    expect((await stat(join(location, "cluster"))).uid).not.toBe(0);
    await second.remove();
    await expect(stat(location)).rejects.toMatchObject({ code: "ENOENT" });
  },
);

test.runIf(userCanRun)(
  "a user starts it, root goes on with it as that user, and the user can start it again",
  async () => {
    const dataDir = await dataDirectory();
    await chown(dataDir, 1, 1);

    const first = await startHolder(dataDir, { uid: 1, gid: 1 });
    expect(first).toMatchObject({ attached: false });
    const asRoot = await startEmbeddedPostgres({ dataDir, log });
    expect(asRoot).toMatchObject({ attached: true, pid: first.pid });
    await first.stop();
    await asRoot.stop();
    const rootAlone = await startEmbeddedPostgres({ dataDir, log });
    expect((await stat(`/proc/${rootAlone.pid}`)).uid).toBe(1);
    await rootAlone.stop();
    const again = await startHolder(dataDir, { uid: 1, gid: 1 });
    expect(again.error).toBeUndefined();
    await again.stop();
  },
);

test.runIf(userCanRun)("a user is told when the data belongs to somebody else", async () => {
  const dataDir = await dataDirectory();
  await mkdir(join(dataDir, "postgres"));
  const holder = await startHolder(dataDir, { uid: 1, gid: 1 });
  expect(holder.error).toMatchObject({
    name: "UnreachableError",
    message: expect.stringContaining("belongs to the user root"),
  });
});

test.runIf(userCanRun)("a user is told when the data directory cannot be written", async () => {
  const dataDir = await dataDirectory();
  const holder = await startHolder(dataDir, { uid: 1, gid: 1 });
  expect(holder.error).toMatchObject({
    name: "UnreachableError",
    message: expect.stringContaining("EACCES"),
  });
});

describe.runIf(userCanRun)("root in a data directory that a user owns", () => {
  const secretText = "only root may read or change this";

  /** A file and a directory of root's, and what they are now. */
  async function makeVictims() {
    const directory = await mkdtemp(join(tmpdir(), "tallyhook-victim-"));
    made.push(directory);
    const file = join(directory, "file");
    await writeFile(file, secretText, { mode: 0o600 });
    const describeAll = async () => [
      (await stat(directory)).uid,
      await readdir(directory),
      await readFile(file, "utf8"),
      (await stat(file)).uid,
      (await stat(file)).mode,
    ];
    return { directory, file, describeAll };
  }

  /** A data directory of the user's with links in it, to what is root's. */
  async function withLinks(links: Readonly<Record<string, string>>): Promise<string> {
    const dataDir = await dataDirectory();
    const base = join(dataDir, "postgres");
    if (links["."] === undefined) await mkdir(base);
    for (const [name, target] of Object.entries(links)) {
      await symlink(target, join(base, name));
      await lchown(join(base, name), 1, 1);
    }
    for (const path of [dataDir, base]) await lchown(path, 1, 1);
    return dataDir;
  }

  test.each([
    ["password", "file"],
    ["server.log", "file"],
    ["port", "file"],
    ["location", "file"],
    ["lock-name", "file"],
    ["users", "directory"],
    [".", "directory"],
  ] as const)("refuses a link in the place of %s", async (name, kind) => {
    const victims = await makeVictims();
    const before = await victims.describeAll();
    const dataDir = await withLinks({ [name]: victims[kind] });
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow(/is a link/);
    expect(await victims.describeAll()).toEqual(before);
  });

  test("makes again what is not finished, and follows no link in its place", async () => {
    const victims = await makeVictims();
    const before = await victims.describeAll();
    const { file, directory } = victims;
    const dataDir = await withLinks({
      "password.new": file,
      "port.new": file,
      "initdb-password": file,
      "cluster.new": directory,
      "binaries.new": directory,
    });
    const server = await startEmbeddedPostgres({ dataDir, log });
    await server.remove();
    expect(await victims.describeAll()).toEqual(before);
  });

  test("works in no directory that the user noted as its place", async () => {
    const victims = await makeVictims();
    const before = await victims.describeAll();
    const dataDir = await dataDirectory();
    const base = join(dataDir, "postgres");
    await mkdir(base);
    await writeFile(join(base, "location"), victims.directory);
    await chmod(victims.directory, 0o755);
    for (const path of [dataDir, base, join(base, "location")]) await chown(path, 1, 1);
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow(
      /location names .*, which is not a directory that Tallyhook made/,
    );
    expect(await victims.describeAll()).toEqual(before);
  });
});

test("what initdb says is in the cause when it fails, and the next start begins again", async () => {
  const dataDir = await dataDirectory();
  await installBinaries(await prepareBase(dataDir));
  // Blocks of 512 or 1024 bytes, by shell: too small for a WAL segment of 16 MiB in both.
  const cramped = await startHolder(dataDir, { shellPrefix: "ulimit -f 16000" });
  expect(cramped.error).toMatchObject({
    name: "UnreachableError",
    message: expect.stringContaining("disk space"),
    cause: expect.stringContaining("initdb exited with"),
  });
  const server = await startEmbeddedPostgres({ dataDir, log });
  expect(server.attached).toBe(false);
  await server.remove();
});

test.each(['"', "$", "`"])("a path with %s in it, which initdb cannot take, is refused with words", async (sign) => {
  const dataDir = join(await dataDirectory(), `a${sign}b`);
  await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow(`its path contains one of " $ \``);
});
