import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import Table from "cli-table3";
import { defaultAccounts, readAccountMap } from "../reports/account-map.ts";
import { closeMonth } from "../reports/close-month.ts";
import { migratedDatabase } from "../runtime.ts";
import type { CliContext } from "./context.ts";

interface CloseOptions {
  force?: string;
  accounts?: string;
  json?: boolean;
}

export function registerClose(program: Command, context: CliContext): void {
  program
    .command("close")
    .description("freeze a month: the rows of every report with their hashes, for ever")
    .argument("<month>", "such as 2026-10", parseMonth)
    .option(
      "--force <reason>",
      "close what is not proved; the reason is printed on it",
      parseReason,
    )
    .option("--accounts <file>", "account map for the journal (JSON, docs/finance.md)")
    .option("--json", "print one JSON object")
    .action((month: string, options: CloseOptions) => run(context, month, options));
}

async function run(context: CliContext, month: string, options: CloseOptions): Promise<void> {
  const accounts =
    options.accounts === undefined ? defaultAccounts : await readAccountMap(options.accounts);
  const close = await context.withRuntime(
    "close",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const { timeZone } = runtime.config;
      return closeMonth(db, { month, timeZone, accounts, reason: options.force ?? null });
    },
    { logLevel: "warn" },
  );
  if (options.json === true) {
    context.stdout.write(`${JSON.stringify(close)}\n`);
    return;
  }
  const table = new Table({ head: ["report", "rows", "SHA-256"], style: { head: [], border: [] } });
  for (const { report, rows, sha256 } of close.reports) table.push([report, rows, sha256]);
  context.stdout.write(
    `${table.toString()}\n${close.month} is closed as of ${close.asOf}: ${close.verdict}, snapshot ${close.id}, ` +
      `SHA-256 of all ${close.sha256}.\n`,
  );
}

function parseMonth(text: string): string {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError("Use 2026-10.");
  return text;
}

function parseReason(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("Say why.");
  return text.trim();
}
