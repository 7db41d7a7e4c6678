import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { commandLine } from "../../src/platform/process-table.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { applyAs, emptyDispatch, orderAt, untilRegistered } from "../dispatch/dispatch-stand.ts";
import { type Program, killPrograms, runTallyhook } from "../e2e/program.ts";
import { progressOf, storeRow } from "../inbox/stored-events.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { childrenOf, signalIfThere } from "../support/process-tree.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
let folder: string;
const hosts: number[] = [];
beforeAll(async () => {
  await migrateQueueSchema(database.directUrl);
  await database.db.raw("create schema own; create table own.signs (sign text)");
});
beforeEach(async () => {
  await emptyDispatch(database.db);
  await database.db.raw("truncate own.signs");
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
});
afterEach(async () => {
  await killPrograms();
  for (const host of hosts.splice(0)) signalIfThere(host, "SIGKILL");
  settings = {};
  await rm(folder, { recursive: true });
});
afterAll(killPrograms);

const definition = pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href;

const handler = (run: string, first = "", name = "only", options = ""): Promise<void> =>
  writeFile(
    join(folder, `${name}.mjs`),
    `${first}
     import { defineHandler } from ${JSON.stringify(definition)};
     export default defineHandler({
       name: "${name}", on: ["order.created"], ${options} async run({ order, db }) { ${run} },
     });`,
  );

let settings: Record<string, string> = {};

const start = (...args: string[]): Program =>
  runTallyhook(args, {
    ...database.environment,
    ...settings,
    TALLYHOOK_HANDLERS: folder,
    ADMIN_PORT: "0",
  });

const signed = (sign: string) =>
  eventually(`there is the sign ${sign}`, () => database.db("own.signs").where({ sign }).first());

/** The process of the handlers. */
async function hostOf({ pid }: Program): Promise<number> {
  const host = await eventually("its host runs", () =>
    childrenOf(pid).find((child) => commandLine(child)?.endsWith("handlers host")),
  );
  hosts.push(host);
  return host;
}

/** The state in the end of an event that arrives. */
async function applied(db: Knex, id: string): Promise<string> {
  const object = sampleOrder({ id });
  const event = { id: `evt_${id}`, type: "order.updated", created_at: object["updated_at"] };
  const raw = Buffer.from(JSON.stringify({ ...event, data: { object } }));
  const seq = await storeRow(db, { raw, eventId: event.id, receivedAgoSeconds: 60 });
  return eventually("the event is worked on", async () => {
    const { state } = await progressOf(db, seq);
    return state === "received" ? null : state;
  });
}

const untilGone = (pid: number) => eventually(`${pid} is gone`, () => commandLine(pid) === null);

test("a handler that blocks for ever holds up no event of its worker, and does not outlive it when that is killed", async () => {
  const { db } = database;
  await handler(`
    await db("own.signs").insert({ sign: "blocks" });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`);
  const worker = start("worker");
  await worker.printed("the worker runs");
  await untilRegistered(db, "only");
  const host = await hostOf(worker);
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await signed("blocks");
  await worker.printed("gives no sign of life");
  expect(worker.output()).toMatch(/"handlers":\["only"\],"msg":"the process of the handlers gives/);

  expect(await applied(db, "order-2")).toBe("applied");
  expect(commandLine(host)).not.toBeNull();

  process.kill(worker.pid, "SIGKILL");
  await untilGone(host);
});

test("Ctrl-C, which the host gets as well, lets a handler complete its run", async () => {
  const { db } = database;
  await handler(`
    await db("own.signs").insert({ sign: "begun" });
    while ((await db("own.signs").where({ sign: "go on" }).first()) === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }`);
  const program = start("handlers", "run");
  await program.printed("the handlers run");
  await untilRegistered(db, "only");
  const host = await hostOf(program);
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await signed("begun");
  program.signalGroup("SIGINT");
  await program.printed('"msg":"the handlers stop"');
  await db("own.signs").insert({ sign: "go on" });
  expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
  expect(await db("dispatch.runs")).toEqual([]);
  expect(program.output()).not.toMatch(/"level":"(?:warn|error)"/);
  await untilGone(host);
});

test("a second signal ends the host with its program, at once", async () => {
  const { db } = database;
  await handler(`await db("own.signs").insert({ sign: "begun" }); await new Promise(() => {});`);
  const program = start("handlers", "run");
  await program.printed("the handlers run");
  await untilRegistered(db, "only");
  const host = await hostOf(program);
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await signed("begun");
  process.kill(program.pid, "SIGTERM");
  await program.printed('"msg":"the handlers stop"');
  process.kill(program.pid, "SIGTERM");
  expect(await program.exited).toEqual({ code: 130, signal: null });
  await untilGone(host);
});

test("a worker applies events while its handlers cannot be loaded, and runs them once they can", async () => {
  const { db } = database;
  const wrong = join(folder, "wrong.mjs");
  await writeFile(wrong, "process.exit(0);");
  const worker = start("worker");
  await worker.printed("the worker runs");
  await worker.printed("it exited with code 0");
  expect(await applied(db, "order-1")).toBe("applied");

  await handler("");
  await rm(wrong);
  await untilRegistered(db, "only");
  worker.signalGroup("SIGTERM");
  expect(await worker.exited).toEqual({ code: 0, signal: null });
});

test("a handler that ends its process is set apart and told of; the other one has done all, and the worker applies", async () => {
  const { db } = database;
  const file = join(folder, "alerts.json");
  const rules = {
    handler_host_down: { afterMinutes: 0 },
    handler_quarantined: { afterMinutes: 0 },
  };
  await writeFile(file, JSON.stringify({ rules }));
  settings = { ALERT_SETTINGS_FILE: file };
  await handler("process.exit(3);", "", "hostile", "concurrency: 1, deadlineMs: 1_000,");
  await handler(`await db("own.signs").insert({ sign: order.id });`, "", "innocent");
  const worker = start("worker");
  await worker.printed("the worker runs");
  for (const name of ["hostile", "innocent"]) await untilRegistered(db, name);

  const ids = Array.from({ length: 8 }, (_, n) => `order-${n}`);
  await applyAs(db, "event:1", ...ids.map((id) => orderAt(id, 1)));
  for (const id of ids) await signed(id);
  await worker.printed("they get another one, and the others go on");
  expect(await applied(db, "order-8")).toBe("applied");
  const alert = await eventually(
    "it is told of",
    () => db("alerts.alerts").where("rule", "handler_quarantined").first(),
    { withinMs: 120_000 },
  );
  expect(alert).toMatchObject({ key: expect.stringMatching(/hostile\.mjs$/), state: "open" });
  expect(await db("alerts.alerts").where({ rule: "handler_host_down" })).toEqual([]);
  expect(await applied(db, "order-9")).toBe("applied");

  worker.signalGroup("SIGTERM");
  expect(await worker.exited).toEqual({ code: 0, signal: null });
  expect(await db("dispatch.hosts")).toEqual([]);
});

test("a handler that begins now sees what happens from its worker's start on, however long its file takes", async () => {
  const { db } = database;
  const go = join(folder, "go");
  await handler(
    `await db("own.signs").insert({ sign: order.id });`,
    `import { existsSync } from "node:fs";
     while (!existsSync(${JSON.stringify(go)})) await new Promise((go) => setTimeout(go, 20));`,
  );
  const worker = start("worker");
  await worker.printed("the worker runs");
  await applyAs(db, "event:1", orderAt("order-1", 1));
  expect(await db("dispatch.handlers")).toEqual([]);
  await writeFile(go, "");
  await signed("order-1");
});

test("handlers run does not start with a file that is not usable, and says why", async () => {
  await writeFile(join(folder, "wrong.mjs"), "export {};");
  const program = start("handlers", "run");
  expect(await program.exited).toEqual({ code: 2, signal: null });
  expect(program.output()).toMatch(/tallyhook: One handler is not usable:\n.*wrong\.mjs: it has no/);
});

test("a file that ends the command that lists handlers is named, with exit code 2", async () => {
  await writeFile(join(folder, "wrong.mjs"), "process.exit(0);");
  const program = start("handlers", "list");
  expect(await program.exited).toEqual({ code: 2, signal: null });
  expect(program.output()).toMatch(/was ended by the import of .*wrong\.mjs/);
});

test("the host is started by the program alone", async () => {
  const program = start("handlers", "host");
  expect(await program.exited).toEqual({ code: 64, signal: null });
  expect(program.output()).toMatch(/which start it themselves/);
});
