import type { Command } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { attemptRun, idempotencyKeyOf } from "../dispatch/attempt.ts";
import type { Handler } from "../dispatch/define-handler.ts";
import type { LoadedHandlers } from "./load-handlers.ts";
import { handlerErrors } from "../dispatch/own-errors.ts";
import { type Postponement, postponementOf } from "../dispatch/postpone.ts";
import { readObjects } from "../dispatch/feed-source.ts";
import { ConfigurationError, UsageError, exitCodes } from "../../../platform/errors.ts";
import { linesWithoutControls, withoutControls } from "../../../platform/readable-text.ts";
import { redactSecrets } from "../../../platform/redaction.ts";
import { loadOwnConfig } from "../../../app/config/config.ts";
import { attemptDeps, hostOwnHandlers, loadOwnHandlers } from "./run-handlers.ts";
import { createProcessMetrics } from "../../../app/metrics/serve-metrics.ts";
import { migratedDatabase } from "../../../app/schema.ts";
import { superviseOwnHandlers } from "./supervised-handlers.ts";
import { type Opened, parserOf, withDatabase } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { rowNumber } from "../../../app/people/fields.ts";
import {
  type RecipientKind,
  type RecipientWords,
  namesNear,
  readOneChange,
  registerRecipientCommands,
} from "../cli/recipients.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";

export function registerHandlers(program: Command, context: CliContext): void {
  const handlers = program.command("handlers");

  registerRecipientCommands(handlers, context, kindOf(context));

  handlers
    .command("test")
    .description("run a handler on a past change as a test (isTest is true); a transactional one is rolled back")
    .argument("<name>", "the handler's name")
    .requiredOption("--change <seq>", "the number of the change", parserOf(rowNumber))
    .action((name: string, { change }: { change: number }) => testOn(context, name, change));

  handlers
    .command("run")
    .description("run the handlers in a process of their own, until a signal; workers run them, too")
    .action(() => run(context));

  handlers
    .command("host", { hidden: true })
    .description("what worker and handlers run start to run the handlers in")
    .action(() => host(context));
}

const kindOf = (context: CliContext): RecipientKind => ({
  words: handlerWords,
  // The names of other recipients have a colon, which a handler's cannot have.
  recipientOf: (name) => (name.includes(":") ? undefined : name),
  nameOf: (recipient) => (recipient.includes(":") ? null : recipient),
  defined: async () => {
    const { handlers, problem } = await loadOwnHandlers(context.loaded().config);
    return { names: handlers.map(({ name }) => name), problem };
  },
});

export const handlerWords: RecipientWords = {
  command: "handlers",
  noun: "handler",
  item: "change",
  items: "changes",
  numberOption: "--change",
  place: "its place in the feed",
  starter: `a worker or "${tallyhook("handlers run")}"`,
  howToStop: "Stop the processes that have its code, or start them without it",
  stillDefined: "Its file is still here",
  undefinedState: "no code here",
  definedKey: "has_code",
  none: "There are no handlers. docs/handlers.md says how to write one.",
  ownErrors: handlerErrors,
};

async function testOn(context: CliContext, name: string, seq: number): Promise<void> {
  const loaded = await loadOwnHandlers(context.loaded().config);
  const handler = findLoaded(loaded, name);
  if (loaded.problem !== null) context.stderr.write(`tallyhook: ${loaded.problem}\n`);
  const run = async ({ db, runtime }: Opened): Promise<FailedTest | null> => {
    const change = await readOneChange(db, seq);
    if (!handler.on.some((kind) => kind === change.kind)) {
      throw new UsageError(`Change ${seq} is ${change.kind}, and ${name} wants only ${handler.on.join(", ")}.`);
    }
    const [object = null] = await readObjects(db, [change]);
    // Another key than that of the real run, which a test must not take the place of.
    const idempotencyKey = idempotencyKeyOf(name, change, crypto.randomUUID());
    const attempt = { change, object, idempotencyKey, isTest: true };
    const rollBack = () => Promise.reject(new RolledBack());
    try {
      await attemptRun(await attemptDeps(runtime, [handler]), handler, attempt, rollBack);
    } catch (error) {
      if (error instanceof RolledBack) return null;
      return { error, later: postponementOf(error, 0, runtime.wallClock.now()) };
    }
    return null;
  };
  const failure = await withDatabase(context, "handlers", run);
  if (failure === null) {
    const undone = handler.transactional ? " What it wrote by db was rolled back." : "";
    context.stdout.write(`${name} has handled change ${seq}, as a test.${undone}\n`);
    return;
  }
  const { error, later } = failure;
  const [what, message] = error instanceof Error ? [error.name, error.message] : ["it", "threw no error"];
  context.stderr.write(
    later === null
      ? `tallyhook: ${name} failed: ${linesWithoutControls(redactSecrets(`${what}: ${message}`))}\n`
      : `tallyhook: ${name} asks to be run again in ${later.delayMs} ms.\n`,
  );
  process.exitCode = exitCodes.differs;
}

interface FailedTest {
  error: unknown;
  later: Postponement | null;
}

class RolledBack extends Error {}

/** Throws `UsageError`, or `ConfigurationError` where it may be in a file that is not usable. */
function findLoaded({ handlers, problem }: LoadedHandlers, name: string): Handler {
  const found = handlers.find((handler) => handler.name === name);
  if (found !== undefined) return found;
  if (problem !== null) {
    throw new ConfigurationError(`There is no usable code of a handler "${withoutControls(name)}" here. ${problem}`);
  }
  const known = handlers.map((handler) => handler.name);
  throw new UsageError(
    `There is no code of a handler "${withoutControls(name)}" here. ` +
      (known.length === 0 ? "src/handlers/ and TALLYHOOK_HANDLERS have none." : namesNear(name, known)),
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
    const problem = await running.problem;
    if (problem !== null) throw new ConfigurationError(problem);
    const isAlive = () => running.sinceProgressMs() < stalledAfterMs;
    const admin = await createProcessMetrics(runtime, {
      name: "handlers",
      version: context.version,
    }).serve({ isAlive });
    runtime.log.info({ health: `${admin.url}/healthz` }, "the handlers run");
    const signal = await stopped;
    runtime.log.info({ signal }, "the handlers stop");
  });
}

/** The worker has already printed the configuration's warnings. */
const host = (context: CliContext): Promise<void> =>
  hostOwnHandlers((work, databaseUrl) =>
    context.withRuntime("handlers", work, {
      loaded: loadOwnConfig(),
      databaseUrl,
      leavesConsole: true,
    }),
  );

/** A round fails far sooner when the database is down. */
const stalledAfterMs = 60_000;
