import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { allParts } from "../src/main/parts.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { runContainer } from "./deployment/container.ts";
import { progressOf, storeRow } from "./inbox/stored-events.ts";
import { sampleOrder } from "./mirror/samples.ts";
import { compile } from "./support/compile.ts";
import { eventually } from "./support/eventually.ts";
import { projectRoot } from "./support/project-root.ts";
import { databaseUrl, withServer } from "./support/server-commands.ts";

const list = "src/main/parts.ts";
const listText = await readFile(join(projectRoot, list), "utf8");

/** The word of each part in the list, and its folder. */
const parts = [...listText.matchAll(/^import \{ (\w+) \} from "\.\.\/(parts\/[^"]+)\/part\.ts";$/gm)].map(
  ([, word = "", path = ""]) => ({ word, folder: join("src", path) }),
);

let folder: string;
/** All parts: the copies without one of them begin with it. */
let whole: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-parts-"));
  whole = join(folder, "whole");
  for (const name of ["src", "migrations", "package.json", "tsconfig.json", "tsconfig.build.json"]) {
    await cp(join(projectRoot, name), join(whole, name), { recursive: true });
  }
  await symlink(join(projectRoot, "node_modules"), join(whole, "node_modules"));
  const errors = await typeErrors(whole);
  if (errors !== "") throw new Error(errors);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the list of the parts names every folder, and the test knows each", () => {
  expect(parts.map(({ word }) => word).toSorted()).toHaveLength(allParts.length - 1);
});

test.each(parts)("without $word the rest type-checks", async ({ word, folder: deleted }) => {
  const copy = join(folder, word);
  await cp(whole, copy, { recursive: true, verbatimSymlinks: true });
  await deleteParts(copy, [deleted]);
  expect(await typeErrors(copy)).toBe("");
});

describe("without any part", () => {
  let copy: string;
  beforeAll(async () => {
    copy = join(folder, "core-alone");
    await cp(whole, copy, { recursive: true, verbatimSymlinks: true });
    await deleteParts(copy, ["src/parts"]);
  });

  test("core migrates an empty database, and its worker applies an event without a warning", async () => {
    expect(await typeErrors(copy)).toBe("");
    const name = `${inject("templateDatabase")}_core_alone`;
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
      const declined = sampleOrder({ id: "declined", subscription_id: null, status: "failed" });
      const event = { id: "evt_1", type: "order.failed", created_at: declined["updated_at"] };
      const raw = Buffer.from(JSON.stringify({ ...event, data: { object: declined } }));
      // Old enough that the relay hands it over at once.
      const seq = await storeRow(db, { raw, eventId: event.id, receivedAgoSeconds: 60 });
      const worker = tallyhook("worker");
      try {
        await eventually("the event is applied", async () => (await progressOf(db, seq)).state === "applied");
        await eventually("the worker runs", () => worker.output().includes("the worker runs"));
      } finally {
        expect(await worker.stop(), worker.output()).toEqual({ code: 0, signal: null });
      }
      const lines = worker.output().trim().split("\n");
      const complaints = lines.filter((line) => /^\{"level":"(?:warn|error|fatal)"/.test(line));
      // A loaded machine may be late for the queue, which has nothing to do with a part.
      expect(complaints.filter((line) => !line.includes("does not answer"))).toEqual([]);
      expect(await db("mirror.orders").pluck<string[]>("id")).toEqual(["declined"]);
    } finally {
      await db.destroy();
      await withServer(inject("serverUrl"), (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
    }
  });
});

/** As docs/extend.md says: the folder, and its words in the list. The merchant's handlers go with what runs them. */
async function deleteParts(copy: string, folders: readonly string[]): Promise<void> {
  const isDeleted = (path: string) => folders.some((each) => path === each || path.startsWith(`${each}/`));
  const words = parts.filter((part) => isDeleted(part.folder)).map(({ word }) => word);
  for (const path of [...folders, ...(words.includes("delivery") ? ["src/handlers"] : [])]) {
    await rm(join(copy, path), { recursive: true });
  }
  const lines = listText.split("\n").filter((line) => !words.some((word) => new RegExp(`\\b${word}\\b`).test(line)));
  await writeFile(join(copy, list), lines.join("\n"));
}

/** The copies know what the whole was checked with. */
const incremental = ["-p", "tsconfig.build.json", "--incremental", "--tsBuildInfoFile", "tsconfig.tsbuildinfo"];

const typeErrors = (copy: string): Promise<string> => compile(incremental, copy);
