import { type Command, InvalidArgumentError } from "commander";
import type { Knex } from "knex";
import { attemptRun, idempotencyKeyOf } from "../../dispatch/attempt.ts";
import { type Handler, retryLaterMs } from "../../dispatch/define-handler.ts";
import {
  type HandlerRow,
  handlerNames,
  mostCounted,
  pauseHandler,
  readHandlers,
  readOpenRuns,
  readRemains,
  readRun,
  removeHandler,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../dispatch/manage-handlers.ts";
import { readObjects } from "../../dispatch/read-objects.ts";
import { readChanges } from "../../feed/changes.ts";
import { ConfigurationError, UsageError, exitCodes } from "../../platform/errors.ts";
import { startHealthServer } from "../../platform/http/listen.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import {
  counted,
  linesWithoutControls,
  someOf,
  withoutControls,
} from "../../platform/readable-text.ts";
import { redactSecrets } from "../../platform/redaction.ts";
import { loadOwnConfig } from "../config/config.ts";
import { attemptDeps, hostOwnHandlers, loadOwnHandlers } from "../handlers.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { superviseOwnHandlers } from "../supervised-handlers.ts";
import { wholeNumber } from "./arguments.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { countText, handlerList, handlerPage } from "./handler-tables.ts";
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
    .option("--reason <text>", "why, for those who see the list", parseReason, "a person paused it")
    .action((name: string, { reason }: { reason: string }) => pause(context, name, reason));

  handlers
    .command("resume")
    .description("end a pause, and try at once what has failed")
    .argument("<name>", "the handler's name")
    .action((name: string) => resume(context, name));

  handlers
    .command("remove")
    .description("forget a handler that nobody needs: its place in the feed, and what waits for it")
    .argument("<name>", "the handler's name")
    .option("--yes", "remove it without asking")
    .action((name: string, { yes }: { yes?: boolean }) => remove(context, name, yes === true));

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

  handlers
    .command("host", { hidden: true })
    .description("what worker and handlers run start to run the handlers in")
    .action(() => host(context));
}

/** In one line of a list and of an alert. */
const longestReason = 200;

function parseReason(text: string): string {
  const reason = text.trim();
  if (reason.length <= longestReason && !/\p{Cc}/u.test(reason)) return reason;
  throw new InvalidArgumentError(`Use one line of at most ${longestReason} characters.`);
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
  // What the database says is of use also where a file is broken, which keeps the workers from starting.
  const loaded = await loadOwnHandlers(context.loaded().config).catch((error: unknown) => {
    if (error instanceof ConfigurationError) return error;
    throw error;
  });
  const names = loaded instanceof ConfigurationError ? null : loaded.map(({ name }) => name);
  const ran = await withDatabase(context, (db) => readHandlers(db));
  const rows = ran.filter(isHandler).map((row) => ({
    ...row,
    has_code: names === null ? null : names.includes(row.name),
  }));
  const neverRan = (names ?? []).filter((name) => !rows.some((row) => row.name === name));
  if (json) {
    context.stdout.write(`${JSON.stringify({ handlers: rows, never_run: neverRan })}\n`);
  } else if (rows.length > 0 || neverRan.length > 0) {
    context.stdout.write(handlerList(rows, neverRan));
  } else if (names !== null) {
    context.stdout.write("There are no handlers. docs/handlers.md says how to write one.\n");
  }
  if (loaded instanceof ConfigurationError) throw loaded;
}

/** The names of other recipients have a colon, which a handler's cannot have. */
const isHandler = ({ name }: { name: string }): boolean => !name.includes(":");

async function show(
  context: CliContext,
  name: string,
  { limit, json }: { limit: number; json?: boolean },
): Promise<void> {
  const { row, runs } = await withDatabase(context, async (db) => {
    await findKnown(context, db, name);
    const [found] = await readHandlers(db, name);
    return { row: found, runs: await readOpenRuns(db, { handler: name, limit: limit + 1 }) };
  });
  if (row === undefined) return;
  const shown = runs.slice(0, limit);
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ ...row, changes: shown })}\n`);
    return;
  }
  context.stdout.write(handlerPage(row, shown));
  if (runs.length > limit) {
    context.stderr.write(`tallyhook: these are the first ${limit}: add --limit for more\n`);
  }
}

async function retry(
  context: CliContext,
  name: string,
  { change, all }: { change?: number; all?: boolean },
): Promise<void> {
  if ((change === undefined) === (all !== true)) {
    throw new UsageError("Name one change by --change, or add --all for every dead one.");
  }
  const { handler, again } = await withDatabase(context, async (db) => {
    const known = await findKnown(context, db, name);
    const which = change === undefined ? ({ state: "dead" } as const) : { seq: change };
    const count = await retryRuns(db, name, which);
    if (count === 0 && change !== undefined) throw await whyNot(db, name, change);
    return { handler: known, again: count };
  });
  if (again === 0) {
    context.stdout.write(`${name} has no dead change.\n`);
    return;
  }
  const changes = `${counted(again, "change")} of ${name}`;
  context.stdout.write(
    handler.paused_by === null
      ? `${changes} will be tried again at once.\n`
      : `${changes} will be tried again once it is not paused: "npx tallyhook handlers resume ${name}".\n`,
  );
}

async function skip(context: CliContext, name: string, change: number): Promise<void> {
  await withDatabase(context, async (db) => {
    await findKnown(context, db, name);
    if (!(await skipRun(db, name, change))) throw await whyNot(db, name, change);
  });
  context.stdout.write(
    `${name} never sees change ${change}. Later ones of its object do not wait for it.\n`,
  );
}

async function pause(context: CliContext, name: string, reason: string): Promise<void> {
  await withDatabase(context, async (db) => {
    await findKnown(context, db, name);
    await pauseHandler(db, name, reason);
  });
  context.stdout.write(`${name} is paused. "npx tallyhook handlers resume ${name}" ends it.\n`);
}

async function resume(context: CliContext, name: string): Promise<void> {
  await withDatabase(context, async (db) => {
    await findKnown(context, db, name);
    await resumeHandler(db, name);
  });
  context.stdout.write(`${name} is not paused.\n`);
}

async function remove(context: CliContext, name: string, yes: boolean): Promise<void> {
  if (!yes) assertCanAsk(context);
  const shown = withoutControls(name);
  await withDatabase(context, async (db) => {
    const remains = await readRemains(db, name);
    if (remains === null) throw await unknown(context, db, name);
    const { waiting, dead, runningUntil } = remains;
    if (runningUntil !== null) {
      throw new UsageError(
        `A process runs ${shown} just now, until ${runningUntil.toISOString()} at most. Stop the processes that have its ` +
          "code, or start them without it; then remove it.",
      );
    }
    const isHere = (await loadedNames(context)).includes(name);
    const again = isHere ? " Its file is still here: it begins anew at the next start." : "";
    const open = waiting + dead;
    const lost =
      open === 0
        ? "Nothing waits for it."
        : `${counted(open < mostCounted ? open : `${mostCounted} or more`, "change")} that it has not done ` +
          `(${countText(dead)} dead) are thrown away.`;
    const says = `Its place in the feed is lost. ${lost}${again}`;
    if (yes) context.stderr.write(`tallyhook: ${says}\n`);
    else await confirm(context, `${says} Remove ${shown}?`);
    await removeHandler(db, name);
  });
  context.stdout.write(`The handler ${shown} is removed.\n`);
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
  const nearest = nearestName(name, known);
  const hint = nearest === null ? `There is ${someOf(known, 10)}.` : `Did you mean "${nearest}"?`;
  throw new UsageError(
    `There is no code of a handler "${withoutControls(name)}" here. ` +
      (known.length === 0 ? "src/handlers/ and TALLYHOOK_HANDLERS have none." : hint),
  );
}

async function run(context: CliContext): Promise<void> {
  await context.withRuntime("handlers", async (runtime) => {
    const stopped = untilSignal();
    await migratedDatabase(runtime);
    const running = await superviseOwnHandlers(runtime);
    if (running === null) {
      throw new ConfigurationError(
        "There are no handlers to run: src/handlers/ has none, and TALLYHOOK_HANDLERS names no folder with one.",
      );
    }
    const isAlive = () => running.sinceProgressMs() < stalledAfterMs;
    const health = await startHealthServer({ isAlive }, runtime.config.admin);
    runtime.onClose(() => health.close());
    runtime.log.info({ health: `${health.url}/healthz` }, "the handlers run");
    const signal = await stopped;
    runtime.log.info({ signal }, "the handlers stop");
  });
}

/** The worker has told of what the configuration warns of. */
const host = (context: CliContext): Promise<void> =>
  hostOwnHandlers((work, databaseUrl) =>
    context.withRuntime("handlers", work, { loaded: loadOwnConfig(), databaseUrl }),
  );

/** A round fails far sooner when the database is down. */
const stalledAfterMs = 60_000;

/** Throws `UsageError` for a handler that has not run on this database. */
async function findKnown(
  context: CliContext,
  db: Knex,
  name: string,
): Promise<Pick<HandlerRow, "name" | "paused_by">> {
  const found = (await handlerNames(db)).filter(isHandler).find((handler) => handler.name === name);
  if (found === undefined) throw await unknown(context, db, name);
  return found;
}

async function unknown(context: CliContext, db: Knex, name: string): Promise<UsageError> {
  const shown = withoutControls(name);
  const known = (await handlerNames(db)).filter(isHandler).map((handler) => handler.name);
  if ((await loadedNames(context)).includes(name)) {
    return new UsageError(
      `No process has run "${shown}" on this database yet: a worker or "npx tallyhook handlers run" begins it at its ` +
        "next start.",
    );
  }
  if (known.length === 0) return new UsageError("No handler has run on this database yet.");
  const nearest = nearestName(name, known);
  return new UsageError(
    `No handler "${shown}" has run on this database. ` +
      (nearest === null
        ? '"npx tallyhook handlers list" shows those that have.'
        : `Did you mean "${withoutControls(nearest)}"?`),
  );
}

/** The names of the handlers whose files are here; none where a file is broken. */
const loadedNames = (context: CliContext): Promise<string[]> =>
  loadOwnHandlers(context.loaded().config).then(
    (handlers) => handlers.map(({ name }) => name),
    () => [],
  );

async function whyNot(db: Knex, name: string, change: number): Promise<UsageError> {
  const run = await readRun(db, name, change);
  if (run === null) {
    return new UsageError(
      `${name} has nothing to do with change ${change}: it has done or skipped it, or never wanted it. "npx tallyhook handlers show ` +
        `${name}" lists those that are not done.`,
    );
  }
  return new UsageError(
    run.waitsFor === null
      ? `${name} runs change ${change} just now. Try again once that has ended.`
      : `Change ${change} waits behind change ${run.waitsFor} of the same object. Retry or skip that one first.`,
  );
}

const noChange = (seq: number): UsageError =>
  new UsageError(
    `The feed has no change ${seq}. The table feed.changes has all that were not removed yet.`,
  );
