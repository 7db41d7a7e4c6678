import Table from "cli-table3";
import type { Command } from "commander";
import type { Knex } from "knex";
import { attemptRun, idempotencyKeyOf } from "../../dispatch/attempt.ts";
import { type Handler, retryLaterMs } from "../../dispatch/define-handler.ts";
import {
  type HandlerRow,
  type OpenRunRow,
  pauseHandler,
  readHandlers,
  readOpenRuns,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../dispatch/manage-handlers.ts";
import { readObjects } from "../../dispatch/read-objects.ts";
import { readChanges } from "../../feed/changes.ts";
import { ConfigurationError, UsageError, exitCodes } from "../../platform/errors.ts";
import { startHealthServer } from "../../platform/http/listen.ts";
import { counted, linesWithoutControls, withoutControls } from "../../platform/readable-text.ts";
import { redactSecrets } from "../../platform/redaction.ts";
import { attemptDeps, loadOwnHandlers, runHandlers } from "../handlers.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { wholeNumber } from "./arguments.ts";
import type { CliContext } from "./context.ts";
import { untilSignal } from "./until-signal.ts";

const changeNumber = wholeNumber(1, 999_999_999_999_999);

export function registerHandlers(program: Command, context: CliContext): void {
  const handlers = program
    .command("handlers")
    .description("your own code that runs on changes: docs/handlers.md");

  handlers
    .command("list")
    .description("list the handlers, how far they are, and what waits")
    .option("--json", "print JSON")
    .action(({ json }: { json?: boolean }) => list(context, json === true));

  handlers
    .command("show")
    .description("show one handler, and the changes that it has not done")
    .argument("<name>", "its name")
    .option("--limit <n>", "how many changes", wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action((name: string, options: { limit: number; json?: boolean }) =>
      show(context, name, options),
    );

  handlers
    .command("retry")
    .description("try dead changes again at once, with all their attempts")
    .argument("<name>", "the handler's name")
    .option("--change <seq>", "this change only", changeNumber)
    .option("--all", "every dead change of this handler")
    .action((name: string, options: { change?: number; all?: boolean }) =>
      retry(context, name, options),
    );

  handlers
    .command("skip")
    .description("give up a change, so that later changes of its object go on")
    .argument("<name>", "the handler's name")
    .requiredOption("--change <seq>", "the number of the change", changeNumber)
    .action((name: string, { change }: { change: number }) => skip(context, name, change));

  handlers
    .command("pause")
    .description("begin nothing more until it is resumed; nothing is lost meanwhile")
    .argument("<name>", "the handler's name")
    .option("--reason <text>", "why, for those who see the list", "a person paused it")
    .action((name: string, { reason }: { reason: string }) => pause(context, name, reason));

  handlers
    .command("resume")
    .description("end a pause, and try at once what has failed")
    .argument("<name>", "the handler's name")
    .action((name: string) => resume(context, name));

  handlers
    .command("test")
    .description(
      "run a handler on a past change, and tell it so (isTest); a transactional one is rolled back",
    )
    .argument("<name>", "the handler's name")
    .requiredOption("--change <seq>", "the number of the change", changeNumber)
    .action((name: string, { change }: { change: number }) => testOn(context, name, change));

  handlers
    .command("run")
    .description(
      "run the handlers in a process of their own, until a signal; workers run them, too",
    )
    .action(() => run(context));
}

const withDatabase = <T>(
  context: CliContext,
  work: (db: Knex, runtime: Runtime) => Promise<T>,
): Promise<T> =>
  context.withRuntime(
    "handlers",
    async (runtime) => work(await migratedDatabase(runtime), runtime),
    { logLevel: "warn" },
  );

async function list(context: CliContext, json: boolean): Promise<void> {
  const loaded = new Set((await loadOwnHandlers(context.loaded().config)).map(({ name }) => name));
  const rows = (await withDatabase(context, (db) => readHandlers(db))).map((row) => ({
    ...row,
    has_code: loaded.has(row.name),
  }));
  const fresh = [...loaded].filter((name) => !rows.some((row) => row.name === name));
  if (json) {
    context.stdout.write(`${JSON.stringify({ handlers: rows, never_run: fresh })}\n`);
    return;
  }
  if (rows.length === 0 && fresh.length === 0) {
    context.stdout.write("There are no handlers. docs/handlers.md says how to write one.\n");
    return;
  }
  const table = new Table({
    head: ["name", "state", "waiting", "dead", "done", "failed", "behind", "last done"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const { name, waiting, dead, done, failed, behind, last_done_at: last } = row;
    const numbers = [waiting, dead, done, failed, behind].map(String);
    table.push([name, stateOf(row), ...numbers, last?.toISOString() ?? "-"]);
  }
  for (const name of fresh) table.push([name, "never ran", "-", "-", "-", "-", "-", "-"]);
  context.stdout.write(`${table.toString()}\n`);
  for (const { name, dead } of rows.filter((row) => row.dead > 0)) {
    context.stdout.write(
      `${name}: ${counted(dead, "dead change holds", "dead changes hold")} up the later ones of the same object. ` +
        `"npx tallyhook handlers show ${name}" lists them; "retry" or "skip" frees them.\n`,
    );
  }
  for (const { name, pause_reason: reason } of rows.filter((row) => row.paused_by !== null)) {
    context.stdout.write(`${name} is paused: ${linesWithoutControls(reason ?? "")}\n`);
  }
}

const stateOf = (row: HandlerRow & { has_code: boolean }): string => {
  if (row.paused_by !== null) return row.paused_by === "person" ? "paused" : "paused: all fail";
  return row.has_code ? "on" : "no code here";
};

async function show(
  context: CliContext,
  name: string,
  { limit, json }: { limit: number; json?: boolean },
): Promise<void> {
  const { row, runs } = await withDatabase(context, async (db) => {
    const [found] = await readHandlers(db, name);
    return { row: found, runs: await readOpenRuns(db, { handler: name, limit }) };
  });
  if (row === undefined) throw noHandler(name);
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ ...row, changes: runs })}\n`);
    return;
  }
  for (const [field, value] of Object.entries(row)) {
    const text = value instanceof Date ? value.toISOString() : String(value ?? "-");
    context.stdout.write(`${field.padEnd(16)} ${withoutControls(text)}\n`);
  }
  if (runs.length === 0) return;
  const table = new Table({
    head: ["change", "kind", "object", "state", "attempts", "error", "next", "holds up"],
    style: { head: [], border: [] },
  });
  for (const each of runs) table.push(runRow(each));
  context.stdout.write(`${table.toString()}\n`);
}

const runRow = (run: OpenRunRow): string[] => [
  String(run.seq),
  run.kind,
  withoutControls(run.id),
  run.is_running ? "running" : run.state,
  String(run.attempts),
  withoutControls(run.error ?? "-"),
  run.due_at?.toISOString() ?? "-",
  String(run.holds_up),
];

async function retry(
  context: CliContext,
  name: string,
  { change, all }: { change?: number; all?: boolean },
): Promise<void> {
  if ((change === undefined) === (all !== true)) {
    throw new UsageError("Name one change by --change, or add --all for every dead one.");
  }
  const again = await withDatabase(context, async (db) => {
    await assertKnown(db, name);
    return retryRuns(db, name, change === undefined ? { state: "dead" } : { seq: change });
  });
  if (again === 0 && change !== undefined) throw noRun(name, change);
  context.stdout.write(`${counted(again, "change")} of ${name} will be tried again at once.\n`);
}

async function skip(context: CliContext, name: string, change: number): Promise<void> {
  const isSkipped = await withDatabase(context, async (db) => {
    await assertKnown(db, name);
    return skipRun(db, name, change);
  });
  if (!isSkipped) throw noRun(name, change);
  context.stdout.write(`${name} never sees change ${change}. Later ones of its object go on.\n`);
}

async function pause(context: CliContext, name: string, reason: string): Promise<void> {
  const isKnown = await withDatabase(context, (db) => pauseHandler(db, name, reason));
  if (!isKnown) throw noHandler(name);
  context.stdout.write(`${name} is paused. "npx tallyhook handlers resume ${name}" ends it.\n`);
}

async function resume(context: CliContext, name: string): Promise<void> {
  const isKnown = await withDatabase(context, (db) => resumeHandler(db, name));
  if (!isKnown) throw noHandler(name);
  context.stdout.write(`${name} is not paused.\n`);
}

async function testOn(context: CliContext, name: string, seq: number): Promise<void> {
  const handler = findLoaded(await loadOwnHandlers(context.loaded().config), name);
  const run = async (db: Knex, runtime: Runtime): Promise<unknown> => {
    const [change] = (await readChanges(db, { after: seq - 1, limit: 1 })).changes;
    if (change?.seq !== seq) throw noChange(seq);
    if (!handler.on.some((kind) => kind === change.kind)) {
      throw new UsageError(
        `Change ${seq} is ${change.kind}, and ${name} wants only ${handler.on.join(", ")}.`,
      );
    }
    const [object = null] = await readObjects(db, [change]);
    // Another key than that of the real run, which a test must not take the place of.
    const idempotencyKey = idempotencyKeyOf(name, change, crypto.randomUUID());
    const attempt = { change, object, idempotencyKey, isTest: true };
    const rollBack = () => Promise.reject(new RolledBack());
    try {
      await attemptRun(await attemptDeps(runtime, [handler]), handler, attempt, rollBack);
    } catch (error) {
      return error instanceof RolledBack ? null : error;
    }
    return null;
  };
  const failure = await withDatabase(context, run);
  if (failure === null) {
    const undone = handler.transactional ? " What it wrote by db was rolled back." : "";
    context.stdout.write(`${name} has handled change ${seq}, as a test.${undone}\n`);
    return;
  }
  const laterMs = retryLaterMs(failure);
  const [what, message] =
    failure instanceof Error ? [failure.name, failure.message] : ["it", "threw no error"];
  context.stderr.write(
    laterMs === null
      ? `tallyhook: ${name} failed: ${linesWithoutControls(redactSecrets(`${what}: ${message}`))}\n`
      : `tallyhook: ${name} asks to be run again in ${laterMs} ms.\n`,
  );
  process.exitCode = exitCodes.differs;
}

class RolledBack extends Error {}

function findLoaded(handlers: readonly Handler[], name: string): Handler {
  const found = handlers.find((handler) => handler.name === name);
  if (found !== undefined) return found;
  const known = handlers.map((handler) => handler.name);
  throw new UsageError(
    `There is no code of a handler "${name}" here. ` +
      (known.length === 0
        ? "src/handlers/ and TALLYHOOK_HANDLERS have none."
        : `There is ${known.join(", ")}.`),
  );
}

async function run(context: CliContext): Promise<void> {
  await context.withRuntime("handlers", async (runtime) => {
    const stopped = untilSignal();
    await migratedDatabase(runtime);
    const running = await runHandlers(runtime);
    if (running === null) {
      throw new ConfigurationError(
        "There are no handlers to run: src/handlers/ has none, and TALLYHOOK_HANDLERS names no folder with one.",
      );
    }
    const isAlive = () => running.dispatch.sinceProgressMs() < stalledAfterMs;
    const health = await startHealthServer({ isAlive }, runtime.config.admin);
    runtime.onClose(() => health.close());
    runtime.log.info({ health: `${health.url}/healthz` }, "the handlers run");
    const signal = await stopped;
    runtime.log.info({ signal }, "the handlers stop");
  });
}

/** A round fails far sooner when the database is down. */
const stalledAfterMs = 60_000;

async function assertKnown(db: Knex, name: string): Promise<void> {
  if ((await readHandlers(db, name)).length === 0) throw noHandler(name);
}

const noHandler = (name: string): UsageError =>
  new UsageError(
    `No handler "${name}" has run on this database. "npx tallyhook handlers list" shows those that have.`,
  );

const noRun = (name: string, change: number): UsageError =>
  new UsageError(
    `${name} has no change ${change} whose turn it is, or runs it just now. "npx tallyhook handlers show ${name}" ` +
      "lists those that are not done.",
  );

const noChange = (seq: number): UsageError =>
  new UsageError(
    `The feed has no change ${seq}. The table feed.changes has all that were not removed yet.`,
  );
