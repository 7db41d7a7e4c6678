import { cp, mkdtemp, readFile, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { runContainer } from "./deployment/container.ts";
import { progressOf, storeRow } from "./inbox/stored-events.ts";
import { sampleOrder } from "./mirror/samples.ts";
import { compile, printed } from "./support/compile.ts";
import { eventually } from "./support/eventually.ts";
import { databaseUrl, withServer } from "./support/server-commands.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const copied = ["src", "migrations", "package.json", "tsconfig.json", "tsconfig.build.json"];
const rooms = ["The sandbox", "The endpoint", "Reports", "Alerts", "Handlers", "Forwarding", "The dashboard"];

const declined = sampleOrder({ id: "declined", subscription_id: null, status: "failed" });

let steps: ReadonlyMap<string, string>;
let folder: string;
/** All rooms, checked and built: what a copy without one of them begins with. */
let whole: string;

beforeAll(async () => {
  const page = await readFile(join(root, "docs/extend.md"), "utf8");
  const [, section = ""] = page.split("\n## Delete what you do not need\n");
  const parts = (section.split("\n## ")[0] ?? "").split("\n### ").slice(1);
  steps = new Map(parts.map((part) => [part.split("\n", 1)[0] ?? "", part]));
  folder = await mkdtemp(join(tmpdir(), "tallyhook-rooms-"));
  whole = join(folder, "whole");
  for (const name of copied) await cp(join(root, name), join(whole, name), { recursive: true });
  await symlink(join(root, "node_modules"), join(whole, "node_modules"));
  const errors = await buildErrors(whole);
  if (errors !== "") throw new Error(errors);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the page tells of every room that can be deleted, and of no other", () => {
  expect([...steps.keys()]).toEqual(rooms);
});

describe.each(rooms)("without this room: %s", (room) => {
  let copy: string;
  beforeAll(async () => {
    copy = join(folder, room.replaceAll(" ", "-"));
    await cp(whole, copy, { recursive: true, verbatimSymlinks: true });
    await follow(copy, steps.get(room) ?? "");
  });

  test("the rest type-checks and builds", async () => {
    expect(await buildErrors(copy)).toBe("");
  });

  test("the rest migrates an empty database, and its worker applies an event without a warning", async () => {
    const name = `${inject("templateDatabase")}_without_${rooms.indexOf(room)}`;
    await withServer(inject("serverUrl"), (client) => client.query(`CREATE DATABASE ${name}`));
    const url = databaseUrl(inject("serverUrl"), name);
    const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
    const tallyhook = (command: string) =>
      runContainer({ command: ["node", "src/bin/tallyhook.js", command] }, copy, {
        DATABASE_URL: url,
        ADMIN_PORT: "0",
      });
    try {
      const migration = tallyhook("migrate");
      expect(await migration.exited, migration.output()).toEqual({ code: 0, signal: null });
      const event = { id: "evt_1", type: "order.failed", created_at: declined["updated_at"] };
      const raw = Buffer.from(JSON.stringify({ ...event, data: { object: declined } }));
      // Old enough that the relay hands it over at once.
      const seq = await storeRow(db, { raw, eventId: event.id, receivedAgoSeconds: 60 });
      const worker = tallyhook("worker");
      try {
        await eventually("the event is applied", async () => (await progressOf(db, seq)).state === "applied");
        // The first sweep of the alerts ends before the worker does.
        await eventually("the worker runs", () => worker.output().includes("the worker runs"));
      } finally {
        expect(await worker.stop(), worker.output()).toEqual({ code: 0, signal: null });
      }
      const lines = worker.output().trim().split("\n");
      const complaints = lines.filter((line) => /^\{"level":"(?:warn|error|fatal)"/.test(line));
      // A loaded machine may be late for the queue, which has nothing to do with a room.
      expect(complaints.filter((line) => !line.includes("does not answer"))).toEqual([]);
      const alerts = await db("alerts.alerts").pluck<string[]>("key");
      expect(alerts).toEqual(room === "Alerts" ? [] : ["decline:declined"]);
    } finally {
      await db.destroy();
      await withServer(inject("serverUrl"), (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
    }
  });
});

/** Does what a list of steps says: whole files first, then lines. */
async function follow(copy: string, text: string): Promise<void> {
  const items = text.split("\n- ").slice(1);
  const kept = items.filter((item) => item.startsWith("Keep ")).flatMap(quoted);
  for (const item of items) {
    const [first = "", ...others] = quoted(item);
    if (item.startsWith("Delete ")) {
      for (const path of [first, ...others]) await remove(copy, path, kept);
    } else if (item.startsWith("In ")) {
      const file = join(copy, first);
      const lines = (await readFile(file, "utf8")).split("\n");
      for (const word of others) expect(lines.join("\n"), `${first} has ${word}`).toContain(word);
      const left = lines.filter((line) => !others.some((word) => line.includes(word)));
      await writeFile(file, left.join("\n"));
    }
  }
}

const quoted = (item: string): string[] => [...item.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

async function remove(copy: string, path: string, kept: readonly string[]): Promise<void> {
  const full = join(copy, path);
  const isFolder = (await stat(full)).isDirectory();
  const files = isFolder ? await readdir(full, { recursive: true, withFileTypes: true }) : [];
  const isKept = (file: string): boolean =>
    kept.some((pattern) => {
      const [before = "", after = ""] = pattern.split("*");
      return file.startsWith(before) && file.endsWith(after);
    });
  if (!isFolder) await removeWithBuilt(copy, path);
  for (const file of files.filter((each) => each.isFile())) {
    const at = join(file.parentPath, file.name).slice(copy.length + 1);
    if (!isKept(at)) await removeWithBuilt(copy, at);
  }
}

async function removeWithBuilt(copy: string, path: string): Promise<void> {
  await rm(join(copy, path));
  const built = join(copy, "dist", path.replace(/\.ts$/, ".js"));
  for (const each of [built, `${built}.map`]) await rm(each, { force: true });
}

/**
 * As `npm run build` does; returns what the compiler prints, nothing when all is well. It checks and builds what depends
 * on a change since the last build, which takes a quarter of the time.
 */
async function buildErrors(copy: string): Promise<string> {
  const incremental = ["--incremental", "--tsBuildInfoFile", "dist/tsconfig.tsbuildinfo"];
  const errors =
    (await compile(["-p", "tsconfig.build.json", ...incremental], copy)) ||
    (await printed(process.execPath, ["src/bin/copy-files.js", "dist"], { cwd: copy }));
  // The launcher takes a build by this file's time, which a change elsewhere leaves as it was.
  await utimes(join(copy, "dist/src/main/main.js"), new Date(), new Date());
  return errors;
}
