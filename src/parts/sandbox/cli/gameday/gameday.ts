import { createInterface } from "node:readline/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { TallyhookError, UsageError, exitCodes } from "../../../../platform/errors.ts";
import type { LoadedConfig } from "../../../../app/config/config.ts";
import type { CliContext } from "../../../../app/cli/context.ts";
import { assertSandbox } from "../trigger.ts";
import { type Columns, tableText } from "../../../../app/cli/table.ts";
import { untilSignal } from "../../../../app/cli/until-signal.ts";
import { type Fault, faults } from "./faults.ts";
import type { Played } from "./play.ts";
import type { Stage } from "./stage.ts";

interface Options {
  list?: boolean;
  check?: boolean;
  only: readonly Fault[];
}

export function registerPlay(program: Command, context: CliContext): void {
  program
    .command("gameday")
    .option("--list", "list the faults and the alert of each")
    .addOption(
      new Option("--only <name>", "play this fault; may be repeated")
        .argParser((name: string, others: readonly Fault[]) => [...others, faultNamed(name)])
        .default([], "all"),
    )
    .option("--check", "run unattended: repair each fault, too; exit 3 if an alert did not come or end")
    .action(async ({ list, check, only }: Options) => {
      if (list === true) {
        for (const { name, rule } of faults) context.stdout.write(`${name.padEnd(18)} ${rule}\n`);
        return;
      }
      await play(context, only.length === 0 ? faults : only, check === true);
    });
}

function faultNamed(name: string): Fault {
  const found = faults.find((fault) => fault.name === name);
  if (found !== undefined) return found;
  const names = faults.map((fault) => fault.name).join(", ");
  throw new InvalidArgumentError(`There is no such fault. There are: ${names}.`);
}

/** Uses a system of its own, regardless of the settings, and removes all of it, even after Ctrl-C. */
async function play(context: CliContext, chosen: readonly Fault[], isCheck: boolean): Promise<void> {
  const loaded = context.loaded();
  const { config } = loaded;
  assertSandbox(config, "gameday", "breaks what it runs against");
  if (!isCheck && !context.stdin.isTTY) {
    throw new UsageError("A game day asks people, and standard input is not a terminal: add --check.");
  }
  if (!isCheck) assertNothingElsewhere(loaded);
  const stop = new AbortController();
  void untilSignal().then((signal) =>
    stop.abort(new TallyhookError(`Stopped by ${signal}. Nothing of the game day is left.`)),
  );
  const say = (text: string): void => void context.stdout.write(`${text}\n`);
  say("Starting PostgreSQL, sandbox, receiver and worker …");
  // Loaded on demand, since it is nearly the whole program, which help does not need.
  const { withStage } = await import("./stage.ts");
  const options = { parts: context.parts, signal: stop.signal, runbooksUrl: config.runbooksUrl };
  const played: Played[] = [];
  try {
    await withStage(options, async (stage) => {
      if (isCheck) await checkAll(stage, chosen, { say, played });
      else await practiseAll(context, stage, chosen, { say, played });
    });
  } catch (error) {
    // A failure that the signal caused is reported as the signal.
    throw stop.signal.aborted ? stop.signal.reason : error;
  }
  say(tableText(columns, played).trimEnd());
  if (isCheck && played.some(({ problem }) => problem !== null)) {
    process.exitCode = exitCodes.differs;
  }
}

interface Told {
  say(text: string): void;
  played: Played[];
}

async function checkAll(stage: Stage, chosen: readonly Fault[], { say, played }: Told): Promise<void> {
  const { check } = await import("./play.ts");
  for (const fault of chosen) {
    const each = await check(stage, fault);
    await fault.after?.(stage);
    played.push(each);
    say(`${fault.name.padEnd(18)} ${each.problem ?? `${fault.rule} fired and ended`}`);
  }
}

/** Variables that would point commands in the second terminal at a real system, instead of the game day's. */
const leadElsewhere = "SVC_BASE_URL SVC_API_KEY SVC_WEBHOOK_SECRETS DATABASE_DIRECT_URL REPORTS_DATABASE_URL REDIS_URL";

/** The second terminal reads the same `.env`. */
function assertNothingElsewhere({ secrets }: LoadedConfig): void {
  const { databaseDirectUrl, reportsDatabaseUrl, redisUrl } = secrets;
  if ([databaseDirectUrl, reportsDatabaseUrl, redisUrl].every((url) => url === null)) return;
  throw new UsageError(
    "DATABASE_DIRECT_URL, REPORTS_DATABASE_URL or REDIS_URL is set, and commands of the team would use it in " +
      "addition to the game day's database. Practise in a clone without a .env, in a terminal without these settings.",
  );
}

async function practiseAll(
  { stdin, stdout }: CliContext,
  stage: Stage,
  chosen: readonly Fault[],
  { say, played }: Told,
): Promise<void> {
  const { practise } = await import("./play.ts");
  const exports = Object.entries(stage.environment).map(([name, value]) => `export ${name}='${value}'`);
  say(
    "\nIn a second terminal, in this folder, for the commands of the runbooks:\n\nunset " +
      `${leadElsewhere}\n${exports.join("\n")}\n\nThe log of receiver and worker: ${stage.folder}/gameday.log`,
  );
  const lines = createInterface({ input: stdin, output: stdout });
  // In a terminal, readline takes Ctrl-C for itself.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  lines.on("close", () => process.kill(process.pid, "SIGINT"));
  try {
    for (const [n, fault] of chosen.entries()) {
      say(`\n${n + 1} of ${chosen.length}: something is broken. You will be alerted …`);
      played.push(await practise(stage, fault, { lines, say }));
      await fault.after?.(stage);
    }
  } finally {
    lines.removeAllListeners("close");
    lines.close();
  }
}

const seconds = (ms: number | null): string => (ms === null ? "–" : `${(ms / 1_000).toFixed(1)} s`);

const columns: Columns<Played> = {
  fault: ({ fault }) => fault.name,
  alert: ({ alert }) => alert?.rule ?? "none",
  "fired after": ({ firedMs }) => seconds(firedMs),
  "repaired after": ({ repairedMs }) => seconds(repairedMs),
  result: ({ problem }) => problem ?? "ok",
};
