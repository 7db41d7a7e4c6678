/**
 * `npm run bench [-- NAME… --seconds N --rounds N --minutes N --mix real|plain --orders N --reads-only --set NAME=VALUE
 * --patient --profile --json]`: runs the benchmarks on this
 * machine, side by side, with their own PostgreSQL (fsync on) under .data/bench. docs/performance.md holds the latest
 * results.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { accept } from "./accept.ts";
import { ackLatency } from "./ack-latency.ts";
import { alertLatency } from "./alert-latency.ts";
import { applyLatency } from "./apply-latency.ts";
import type { Benchmark, BenchOptions, BenchResult } from "./benchmark.ts";
import { dashboard } from "./dashboard.ts";
import { compile } from "./support/compile.ts";
import { drain } from "./drain.ts";
import { endToEnd } from "./end-to-end.ts";
import { grown } from "./grown.ts";
import { handlers } from "./handlers.ts";
import { hostile } from "./hostile.ts";
import { memory } from "./memory.ts";
import { metrics } from "./metrics.ts";
import { processes } from "./processes.ts";
import { peer } from "./peer.ts";
import { sandbox } from "./sandbox.ts";
import { scrape } from "./scrape.ts";
import { reconcile } from "./reconcile.ts";
import { reports } from "./reports.ts";
import { tracing } from "./tracing.ts";
import { summariseProfiles } from "./support/cpu-profile.ts";
import { endInAnyCase } from "./support/ending.ts";
import { formatTable } from "./support/format.ts";
import { describeMachine } from "./support/machine.ts";
import { createStand } from "./support/stand.ts";

const benchmarks: readonly Benchmark[] = [
  accept,
  endToEnd,
  peer,
  drain,
  processes,
  ackLatency,
  memory,
  hostile,
  applyLatency,
  alertLatency,
  handlers,
  sandbox,
  reconcile,
  reports,
  grown,
  dashboard,
  tracing,
  metrics,
  scrape,
];

const onlyByName = benchmarks.filter((each) => each.isOnlyByName).map(({ name }) => name);

interface Flags extends Omit<BenchOptions, "settings"> {
  json: boolean;
  set: BenchOptions["settings"];
}

const program = new Command("bench")
  .addArgument(
    new Argument("[names...]", `all when left out, but not ${onlyByName.join(", ")}`).choices(
      benchmarks.map(({ name }) => name),
    ),
  )
  .addOption(new Option("--seconds <n>", "of one round").argParser(positive).default(5))
  .addOption(new Option("--rounds <n>", "their median counts").argParser(positive).default(5))
  .addOption(new Option("--minutes <n>", "of the memory benchmark").argParser(positive).default(null))
  .addOption(
    new Option("--mix <mix>", "of the events in accept, drain and end-to-end (which does both)")
      .choices(["real", "plain"])
      .default(null),
  )
  .addOption(
    new Option("--orders <n>", "of the grown database, which has five times as many events")
      .argParser(positive)
      .default(1_000_000),
  )
  .addOption(
    new Option("--set <name=value>", "a setting of PostgreSQL; repeat it for several")
      .argParser(addSetting)
      .default({}, "those of the embedded one"),
  )
  .option("--reads-only", "of grown: the reports and a reconciliation, no events", false)
  .option("--profile", "write CPU profiles and the costliest statements too (slower)", false)
  .option("--patient", "wait until the machine is quiet, repeat rounds that were disturbed", false)
  .option("--json", "print one JSON object at the end and nothing else", false)
  .action(run);

async function run(names: string[], { set: settings, ...given }: Flags): Promise<void> {
  const flags = { ...given, settings };
  const say = (line: string) => {
    if (!flags.json) console.log(line);
  };
  const chosen = benchmarks.filter(({ name, isOnlyByName }) =>
    names.length === 0 ? isOnlyByName !== true : names.includes(name),
  );
  await compile();
  const opening = createStand(flags);
  const end = endInAnyCase(async () => (await opening).close());
  const results: Record<string, BenchResult> = {};
  let machine: string[] = [];
  try {
    const stand = await opening;
    machine = await describeMachine(stand);
    for (const line of machine) say(line);
    say(`logs and profiles: ${stand.directory}`);
    if (!stand.backends.includes("redis")) say("redis-server is not installed: its parts are skipped");
    for (const benchmark of chosen) {
      say(`\n${benchmark.name}: ${benchmark.title}`);
      const result = await benchmark.run(stand, flags, (line) => say(`  ${line}`));
      results[benchmark.name] = result;
      if (result.rows.length > 0) say(`\n${formatTable(result.rows)}`);
      for (const note of result.notes) say(`- ${note}`);
    }
  } finally {
    await end();
  }
  if (flags.profile) {
    const { directory } = await opening;
    for (const { name, rows } of await summariseProfiles(directory)) {
      await writeFile(join(directory, `${name}-functions.txt`), formatTable(rows));
    }
  }
  const targets = Object.values(results).flatMap((result) => result.targets);
  const verdicts = targets.map(({ reached, ...target }) => ({
    ...target,
    reached: reached ? "yes" : "NO",
  }));
  if (verdicts.length > 0) say(`\n${formatTable(verdicts)}`);
  if (flags.json) console.log(JSON.stringify({ machine, results }));
}

function addSetting(text: string, known: BenchOptions["settings"]): BenchOptions["settings"] {
  const [, name, value] = /^(\w+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("name=value");
  return { ...known, [name]: value };
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError("It should be a number above 0.");
  return value;
}

// `endInAnyCase` handles only uncaught errors, and only until it has ended everything.
try {
  await program.parseAsync();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
