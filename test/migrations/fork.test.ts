import { execFile } from "node:child_process";
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { killPrograms, runTallyhook } from "../e2e/program.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { projectRoot } from "../support/project-root.ts";
import { useTestDatabase } from "../support/use-database.ts";

const run = promisify(execFile);
const database = useTestDatabase();
let folder: string;
let upstream: string;
let fork: string;

/** Ours is the release of today, in a repository of its own; theirs a clone. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-fork-"));
  [upstream, fork] = [join(folder, "upstream"), join(folder, "fork")];
  const copied = ["src", "migrations", "package.json", "tsconfig.json", ".gitignore", "README.md"];
  for (const name of copied) {
    await cp(join(projectRoot, name), join(upstream, name), { recursive: true });
  }
  await git(upstream, "init", "--quiet", "--initial-branch=main");
  await commit(upstream, "A release");
  await git(folder, "clone", "--quiet", upstream, fork);
  await symlink(join(projectRoot, "node_modules"), join(fork, "node_modules"));
  await appendFile(join(fork, ".git/info/exclude"), "node_modules\n");
});
afterAll(async () => {
  await killPrograms();
  await rm(folder, { recursive: true, force: true });
});

const git = async (cwd: string, ...args: string[]): Promise<string> => {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  return (await run("git", [...who, ...args], { cwd })).stdout;
};
const commit = async (cwd: string, title: string): Promise<void> => {
  await git(cwd, "add", "--all");
  await git(cwd, "commit", "--quiet", "--message", title);
};
const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
};
const edit = async (path: string, from: string, to: string): Promise<void> => {
  const text = await readFile(path, "utf8");
  expect(text).toContain(from);
  await writeFile(path, text.replace(from, to));
};

const environment = (): Record<string, string> => ({ ...database.environment, ADMIN_PORT: "0" });
const tallyhook = (...args: string[]) =>
  runTallyhook(args, environment(), undefined, join(fork, "src/bin/tallyhook.js"));
const printedBy = async (...args: string[]): Promise<string> => {
  const program = tallyhook(...args);
  expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
  return program.output();
};

/** What docs/upgrading.md calls the merchant's. */
async function addOwnFiles(): Promise<void> {
  await write(
    join(fork, "migrations/own/0001_shop.sql"),
    "create schema shop; create table shop.declines (order_id text primary key, at timestamptz default now());\n",
  );
  await write(
    join(fork, "src/handlers/note-declines.ts"),
    `import { defineHandler } from "../parts/delivery/dispatch/define-handler.ts";

export default defineHandler({
  name: "note-declines",
  on: ["order.failed"],
  from: "beginning",
  includeImport: true,
  transactional: true,
  async run({ order, db }) {
    await db("shop.declines").insert({ order_id: order.id });
  },
});
`,
  );
  await write(
    join(fork, "src/parts/reports/own/declines/declines.sql"),
    `create or replace function reports.own_declines(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null)
returns table (order_id text) language sql stable as $$ select order_id from shop.declines $$;
`,
  );
  await write(
    join(fork, "src/parts/reports/own/declines/declines.ts"),
    `import { type Report, text } from "../../base/report.ts";

export const declines: Report = {
  name: "shop-declines",
  explains: "what the handler has noted",
  source: "own_declines",
  sql: new URL("./declines.sql", import.meta.url),
  columns: [...text("order_id")],
  orderBy: 'order_id collate "C"',
};
`,
  );
  await write(
    join(fork, "src/parts/reports/own/own-reports.ts"),
    `import type { Report } from "../base/report.ts";
import { declines } from "./declines/declines.ts";

export const ownReports: readonly Report[] = [declines];
`,
  );
  await write(join(fork, ".env.shop"), "TALLYHOOK_TIME_ZONE=Europe/Berlin\n");
  await write(join(fork, "docker-compose.override.yml"), "services: {}\n");
}

/** What a release may bring: tables, texts of functions, and changes near everything that merchants own. */
async function releaseUpstream(): Promise<void> {
  await write(join(upstream, "migrations/9001_next.sql"), "create table mirror.next (id int);\n");
  await appendFile(join(upstream, "src/core/inbox/events.sql"), "\n-- Another text.\n");
  await appendFile(join(upstream, "src/handlers/send-refund-receipt.example.ts"), "\n// More.\n");
  await appendFile(join(upstream, "migrations/own/README.md"), "More.\n");
  await appendFile(join(upstream, "README.md"), "\nMore.\n");
  await edit(join(upstream, "package.json"), '"version": "', '"version": "9.');
  await commit(upstream, "The next release");
}

/** An order that was declined arrives, and the worker applies it and runs the handler. */
async function declines(id: string): Promise<void> {
  const object = sampleOrder({ id, subscription_id: null, status: "failed" });
  const event = { id: `evt_${id}`, type: "order.failed", created_at: object["updated_at"] };
  const raw = Buffer.from(JSON.stringify({ ...event, data: { object } }));
  await storeRow(database.db, { raw, eventId: event.id, receivedAgoSeconds: 60 });
  const worker = tallyhook("worker");
  await eventually(`the handler has noted ${id}`, async () =>
    (await database.db("shop.declines").pluck<string[]>("order_id")).includes(id),
  ).catch((error: unknown) => {
    throw new Error(worker.output(), { cause: error });
  });
  expect(await worker.stop(), worker.output()).toEqual({ code: 0, signal: null });
}

test("a fork with its own handler, report, table and settings merges a release without a conflict, and all of it goes on", async () => {
  await addOwnFiles();
  await commit(fork, "Our shop");
  expect(await printedBy("migrate")).toContain("own/0001_shop");
  await declines("before");

  await releaseUpstream();
  await git(fork, "fetch", "--quiet", "origin");
  await git(fork, "merge", "--no-edit", "origin/main");
  expect(await git(fork, "status", "--porcelain")).toBe("");

  const early = tallyhook("worker");
  expect(await early.exited, early.output()).toMatchObject({ code: 2 });
  expect(early.output()).toContain('lacks 9001_next, src/core/inbox/events.sql. Run "node');
  const migrated = await printedBy("migrate");
  expect(migrated).toContain("Migrated: 9001_next.");
  expect(migrated).not.toContain("own/");

  await declines("after");
  const report = await printedBy("report", "shop-declines", "--from", "2026-01", "--format", "csv");
  expect(report).toMatch(/^before\r?\nafter\r?$|^after\r?\nbefore\r?$/m);

  // A table of theirs takes their next number, whatever ours are.
  await write(join(fork, "migrations/own/0002_note.sql"), "alter table shop.declines add note text;");
  expect(await printedBy("migrate")).toContain("Migrated: own/0002_note.");
});
