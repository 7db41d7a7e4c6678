import { setTimeout as sleep } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import type { Knex } from "knex";
import { type Change, readChanges, readableUntil, changeJson } from "../../../core/mirror/changes/read-changes.ts";
import { countOpenWork } from "../../../core/inbox/queries.ts";
import { kindNamed } from "../../../core/mirror/changes/kind-named.ts";
import { type ChangeKind, changeKinds } from "../../../core/mirror/changes/kinds.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Config } from "../../../app/config/config.ts";
import { serviceLocation } from "../../../app/create-runtime.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { migratedDatabase } from "../../../app/schema.ts";
import { wholeNumber } from "../../../app/people/fields.ts";
import { changeLine } from "../../../app/cli/change-text.ts";
import { parserOf } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { eraseCustomer } from "../../../app/erase-customer.ts";
import { type SandboxCalls, createSandboxCalls } from "./demo/sandbox-calls.ts";
import { type Scenario, scenarios } from "./trigger-scenarios.ts";
import { createShop } from "./trigger-shop.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";

interface Options {
  amount?: number;
  json?: boolean;
}

export function registerTrigger(program: Command, context: CliContext): void {
  program
    .command("trigger")
    .argument("<kind>", "the kind of change, such as order.refunded", parseKind)
    .option(
      "--amount <n>",
      "with order.refunded: refund this part, in minor units (default: all)",
      parserOf(wholeNumber(1, 1_000_000_000, "minor units")),
    )
    .option("--json", "print one JSON object: what was done, and the change of each step")
    .addHelpText("after", `\nKinds, and what each does:\n${kindLines()}`)
    .action((kind: ChangeKind, options: Options) => trigger(context, kind, options));
}

function parseKind(text: string): ChangeKind {
  const found = kindNamed(text);
  if ("kind" in found) return found.kind;
  throw new InvalidArgumentError(found.problem);
}

const kindLines = (): string =>
  changeKinds
    .map((kind) => {
      return `  ${kind.padEnd(26)} ${scenarios[kind].does}\n`;
    })
    .join("");

async function trigger(context: CliContext, kind: ChangeKind, { amount, json }: Options): Promise<void> {
  if (amount !== undefined && kind !== "order.refunded") {
    throw new UsageError("--amount is for order.refunded alone.");
  }
  const scenario = scenarios[kind];
  const stop = new AbortController();
  void untilSignal().then((signal) => stop.abort(new TallyhookError(`Stopped by ${signal}.`)));
  const steps = await context.withRuntime(
    "trigger",
    (runtime) =>
      runScenario(runtime, scenario, {
        amount,
        signal: stop.signal,
        say: (text) => void (json === true || context.stdout.write(`${text}\n`)),
        warn: (text) => void context.stderr.write(`tallyhook: ${text}\n`),
      }),
    { logLevel: "warn" },
  );
  if (json !== true) return;
  const told = steps.map(({ did, change }) => ({ did, change: changeJson(change) }));
  context.stdout.write(`${JSON.stringify({ kind, steps: told })}\n`);
}

/** A step of a scenario, and its change in the feed. */
export interface ToldStep {
  did: string;
  change: Change;
}

interface Run {
  /** Minor units of a partial refund. */
  amount?: number | undefined;
  signal: AbortSignal;
  say(text: string): void;
  /** Announces what will be done to the whole sandbox. */
  warn(text: string): void;
  /** How long a change may take after the sandbox's answer. */
  limitSeconds?: number;
}

/**
 * Plays a scenario at the sandbox of the settings, and waits after each step until the feed has its change. Receiver
 * and worker must run. Throws `UsageError` if the settings name another service, and `UnreachableError` if the sandbox
 * does not answer or a change does not come.
 */
export async function runScenario(
  runtime: Runtime,
  scenario: Scenario,
  { amount, signal, say, warn, limitSeconds = 30 }: Run,
): Promise<ToldStep[]> {
  assertSandbox(runtime.config, "trigger", "makes orders and charges cards");
  const { baseUrl, apiKey } = serviceLocation(runtime.config, runtime.secrets);
  const { control } = createSandboxCalls(baseUrl, apiKey, signal);
  await assertAnswers(control, baseUrl);
  const db = await migratedDatabase(runtime);
  const shop = createShop({ client: runtime.serviceClient(), control, signal, warn });
  const steps: ToldStep[] = [];
  await scenario.run({
    shop,
    amount,
    async step(kind, run) {
      const from = await readableUntil(db);
      const deed = await run();
      say(deed.says);
      const wanted = { kind, id: deed.id, from };
      const change = await untilTold({ runtime, db, control, signal, limitSeconds }, wanted);
      say(`  ${changeLine(change)}`);
      steps.push({ did: deed.says, change });
      return deed;
    },
    async erase(id) {
      const actor = { accountId: null, name: "tallyhook trigger", via: "command line", address: null } as const;
      const { config, parts } = runtime;
      const input = { customer: id, reason: "trigger customer.erased" };
      await eraseCustomer({ db, config, parts }, { actor, input });
      return { id, says: `redacted customer ${id} in this database` };
    },
  });
  return steps;
}

/** Refuses harmful commands at a service that may be real. Throws `UsageError`. */
export function assertSandbox({ service }: Pick<Config, "service">, command: string, does: string): void {
  if (service.kind === "sandbox") return;
  throw new UsageError(
    `"${command}" ${does}, so it runs against the sandbox alone, and SVC_BASE_URL is set (${service.baseUrl}). ` +
      `Nothing was done. Leave SVC_BASE_URL and SVC_API_KEY unset and run "${tallyhook("start")}"; SANDBOX_PORT is ` +
      "where the sandbox is.",
  );
}

async function assertAnswers(control: SandboxCalls["control"], baseUrl: string): Promise<void> {
  try {
    await control("GET", "");
  } catch (cause) {
    throw new UnreachableError(
      `No sandbox answers at ${baseUrl}. Start everything with "${tallyhook("start")}"; SANDBOX_PORT is where the ` +
        "sandbox is.",
      { cause },
    );
  }
}

interface Watch {
  runtime: Pick<Runtime, "wallClock">;
  db: Knex;
  control: SandboxCalls["control"];
  signal: AbortSignal;
  limitSeconds: number;
}

const pollEveryMs = 100;

/** Reads the feed until it has the change. Throws `UnreachableError` at the limit, with what holds it up. */
async function untilTold(
  { runtime, db, control, signal, limitSeconds }: Watch,
  { kind, id, from }: { kind: ChangeKind; id: string; from: number },
): Promise<Change> {
  const { wallClock } = runtime;
  const untilMs = wallClock.now().getTime() + limitSeconds * 1_000;
  let after = from;
  for (;;) {
    const page = await readChanges(db, { after, limit: 1_000, kinds: [kind] });
    const found = page.changes.find((change) => change.id === id);
    if (found !== undefined) return found;
    after = page.position;
    if (page.hasMore) continue;
    signal.throwIfAborted();
    if (wallClock.now().getTime() >= untilMs) {
      throw new UnreachableError(
        `The feed has no ${kind} of ${id} after ${limitSeconds} s. ${await whatHoldsUp(db, control)}`,
      );
    }
    await sleep(pollEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** For a person: the place on the way to the feed where the change may be stuck. */
async function whatHoldsUp(db: Knex, control: SandboxCalls["control"]): Promise<string> {
  const { endpoints } = await control<{ endpoints: unknown[] }>("GET", "");
  if (endpoints.length === 0) {
    return (
      `The sandbox sends its webhooks nowhere: "${tallyhook("start")}" runs receiver and worker and sets the ` +
      "address."
    );
  }
  const { events, fetches } = await countOpenWork(db);
  if (events + fetches > 0) {
    const waiting = `${counted(events, "event")} and ${counted(fetches, "refetch", "refetches")}`;
    return `${waiting} wait in the inbox: is the worker running ("${tallyhook("worker")}")?`;
  }
  const path = "/deliveries?status=pending";
  const { data } = await control<{ data: unknown[] }>("GET", path);
  if (data.length > 0) {
    const waiting = counted(data.length, "webhook");
    return `The receiver has not accepted ${waiting} of the sandbox: is it running ("${tallyhook("receiver")}")?`;
  }
  return (
    "All webhooks were accepted, and all events of this database are applied. Does the receiver use this database " +
    "(DATABASE_URL)? Does the sandbox lose webhooks (GET /_sandbox/faults)?"
  );
}
