import Table from "cli-table3";
import { type Command, InvalidArgumentError, Option } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { moneyText } from "../../../platform/money.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { acknowledgingFinding } from "../acts.ts";
import {
  type FindingRow,
  type FindingState,
  countFindings,
  findFinding,
  findingStates,
  listFindings,
} from "../findings/findings.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { migratedDatabase } from "../../../main/schema.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { wholeNumber } from "../../../app/cli/arguments.ts";
import type { CliContext } from "../../../app/cli/context.ts";

interface ListOptions {
  state?: FindingState;
  all?: boolean;
  limit: number;
  json?: boolean;
}

export function registerFindings(program: Command, context: CliContext): void {
  const findings = program
    .command("findings")
    .description("differences and broken invariants that reconciliation found");

  findings
    .command("list")
    .description("list the open findings, the most severe first")
    .option("--state <state>", `only in this state: ${findingStates.join(", ")}`, parseState)
    .addOption(new Option("--all", "in every state").conflicts("state"))
    .option("--limit <n>", "how many", wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action((options: ListOptions) => list(context, options));

  findings
    .command("show")
    .description("show one finding with its evidence")
    .argument("<id>", "its number", wholeNumber(1, 999_999_999_999_999))
    .option("--json", "print JSON")
    .action((id: number, { json }: { json?: boolean }) => show(context, id, json === true));

  registerAct(findings, context, {
    act: acknowledgingFinding,
    name: "ack",
    description: "acknowledge a finding: no report fails because of it, until it changes, or heals and comes back",
    takes: {
      finding: { flags: "<id>", says: "its number" },
      note: { flags: "--note <text>", says: "why it may stay; the exceptions report prints it" },
    },
    by: { who: "person", says: "who decides (default: this system's user, if a person)" },
    deps: async (runtime) => ({ db: await migratedDatabase(runtime), clock: runtime.wallClock }),
    say: ({ id }, { actor }) => `Finding ${id} is acknowledged by ${withoutControls(actor.name)}.\n`,
    hints: { unknown: listHint },
  });
}

const withDatabase = <T>(context: CliContext, run: (runtime: Runtime) => Promise<T>): Promise<T> =>
  context.withRuntime(
    "findings",
    async (runtime) => {
      await migratedDatabase(runtime);
      return run(runtime);
    },
    { logLevel: "warn" },
  );

async function list(context: CliContext, { state, all, limit, json }: ListOptions): Promise<void> {
  const one = state === undefined ? (["open", "reopened"] as const) : [state];
  const states = all === true ? findingStates : one;
  const { rows, counts } = await withDatabase(context, async (runtime) => {
    const db = await runtime.db();
    return { rows: await listFindings(db, { states, limit }), counts: await countFindings(db) };
  });
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ findings: rows, counts })}\n`);
    return;
  }
  const table = new Table({
    head: ["id", "severity", "state", "what", "object", "at risk", "first seen"],
    style: { head: [], border: [] },
  });
  for (const row of rows) table.push(listRow(row));
  const totals = Object.entries(counts).map(([name, n]) => `${name} ${n}`);
  context.stdout.write(`${table.toString()}\nAll findings: ${totals.join(", ")}.\n`);
}

const listRow = (row: FindingRow): string[] => [
  row.id,
  row.mode === "observe" ? `${row.severity}, observed` : row.severity,
  row.state,
  row.identity ?? row.class,
  row.resource === null ? "-" : `${row.resource} ${withoutControls(row.object_id ?? "")}`,
  row.amount_at_risk_minor === null ? "-" : moneyText(row.amount_at_risk_minor, row.currency),
  row.first_seen.toISOString(),
];

async function show(context: CliContext, id: number, json: boolean): Promise<void> {
  const found = await withDatabase(context, async (runtime) => findFinding(await runtime.db(), id));
  if (found === null) throw new UsageError(`There is no finding "${id}". ${listHint}`);
  if (json) {
    context.stdout.write(`${JSON.stringify(found)}\n`);
    return;
  }
  for (const [name, value] of Object.entries(found)) {
    context.stdout.write(`${name.padEnd(22)} ${withoutControls(textOf(value))}\n`);
  }
}

function textOf(value: unknown): string {
  if (value === null) return "-";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "string" ? value : JSON.stringify(value);
}

const listHint = `"${tallyhook("findings list --all")}" shows them.`;

function parseState(text: string): FindingState {
  const state = findingStates.find((known) => known === text);
  if (state === undefined) {
    throw new InvalidArgumentError(`Use one of ${findingStates.join(", ")}.`);
  }
  return state;
}
