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
import { type Columns, fieldsText, tableText } from "../../../app/cli/table.ts";

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
  const totals = Object.entries(counts).map(([name, n]) => `${name} ${n}`);
  context.stdout.write(`${tableText(columns, rows)}All findings: ${totals.join(", ")}.\n`);
}

const columns: Columns<FindingRow> = {
  id: ({ id }) => id,
  severity: ({ mode, severity }) => (mode === "observe" ? `${severity}, observed` : severity),
  state: ({ state }) => state,
  what: (row) => row.identity ?? row.class,
  object: ({ resource, object_id: id }) => (resource === null ? null : `${resource} ${id ?? ""}`),
  "at risk": (row) => (row.amount_at_risk_minor === null ? null : moneyText(row.amount_at_risk_minor, row.currency)),
  "first seen": (row) => row.first_seen,
};

async function show(context: CliContext, id: number, json: boolean): Promise<void> {
  const found = await withDatabase(context, async (runtime) => findFinding(await runtime.db(), id));
  if (found === null) throw new UsageError(`There is no finding "${id}". ${listHint}`);
  if (json) {
    context.stdout.write(`${JSON.stringify(found)}\n`);
    return;
  }
  context.stdout.write(fieldsText(found, 22));
}

const listHint = `"${tallyhook("findings list --all")}" shows them.`;

function parseState(text: string): FindingState {
  const state = findingStates.find((known) => known === text);
  if (state === undefined) {
    throw new InvalidArgumentError(`Use one of ${findingStates.join(", ")}.`);
  }
  return state;
}
