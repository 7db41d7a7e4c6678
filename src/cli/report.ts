import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import Table from "cli-table3";
import { UsageError } from "../platform/errors.ts";
import { mailAddressList } from "../platform/setting-kinds.ts";
import { allReports } from "../reports/catalogue/all.ts";
import { findReport } from "../reports/find-report.ts";
import { formats } from "../reports/render/formats.ts";
import { writeReport } from "../reports/write-report.ts";
import type { Format } from "../reports/render/formats.ts";
import { migratedDatabase } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { parseInstant } from "./instant.ts";
import { mailReport } from "./report-mail.ts";
import { openOutput } from "./report-output.ts";

interface ReportOptions {
  from?: string;
  to?: string;
  asOf?: Date;
  currency?: string;
  format?: Format;
  json?: boolean;
  out?: string;
  accounts?: string;
  mailTo?: readonly string[];
}

export function registerReport(program: Command, context: CliContext): void {
  program
    .command("report")
    .description('a finance report; "report list" explains each')
    .argument("[name]", "which report, or list", "list")
    .option("--from <day>", "first day, such as 2026-10-01, or a month (default: this month)")
    .option("--to <day>", "last day, included (default: today, or the end of --from's month)")
    .option(
      "--as-of <time>",
      "what the report said at that time, such as 2026-11-01T00:00:00Z",
      parseInstant,
    )
    .option("--currency <code>", "only this currency, such as usd")
    .option("--format <format>", `${formats.join(", ")} (default: table)`, parseFormat)
    .addOption(new Option("--json", "the same as --format json").conflicts("format"))
    .option("--out <file>", "write to a file")
    .option("--accounts <file>", "account map for the journal (JSON, docs/finance.md)")
    .option(
      "--mail-to <addresses>",
      "mail it to these addresses instead of printing it (an HTML page, or --format)",
      parseAddresses,
    )
    .action((name: string, options: ReportOptions) =>
      name === "list" ? list(context, options.json === true) : run(context, name, options),
    );
}

function list({ stdout }: CliContext, json: boolean): void {
  if (json) {
    const rows = allReports.map(({ name, explains }) => ({ name, explains }));
    stdout.write(`${JSON.stringify(rows)}\n`);
    return;
  }
  const table = new Table({ head: ["report", "answers"], style: { head: [], border: [] } });
  for (const { name, explains } of allReports) table.push([name, explains]);
  stdout.write(`${table.toString()}\n`);
}

async function run(context: CliContext, name: string, options: ReportOptions): Promise<void> {
  const report = findReport(name);
  if (options.accounts !== undefined && report.takesAccounts !== true) {
    throw new UsageError(`${name} books nothing: --accounts is for the journal.`);
  }
  const { from, to, asOf, currency, accounts, mailTo, out } = options;
  const asked = { report, from, to, asOf, currency, accounts };
  const format = options.json === true ? "json" : options.format;
  if (mailTo !== undefined) {
    await mailReport(context, asked, { to: mailTo, format, out });
    return;
  }
  if (format === "xlsx" && out === undefined) {
    throw new UsageError("A workbook goes to a file: add --out report.xlsx.");
  }
  await context.withRuntime(
    "report",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const output = await openOutput(context.stdout, out);
      const { timeZone, networkRegion: region } = runtime.config;
      try {
        const about = await writeReport(
          { db, clock: runtime.serviceClock, timeZone, region, write: output.write },
          { ...asked, format: format ?? "table" },
        );
        await output.keep(format === "csv" ? about : null, context.stderr);
      } catch (error) {
        await output.discard();
        throw error;
      }
    },
    { logLevel: "warn" },
  );
}

function parseFormat(text: string): Format {
  const format = formats.find((known) => known === text);
  if (format === undefined) throw new InvalidArgumentError(`Use one of ${formats.join(", ")}.`);
  return format;
}

function parseAddresses(text: string): readonly string[] {
  const parsed = mailAddressList.schema.safeParse(text);
  if (!parsed.success) throw new InvalidArgumentError(`Use ${mailAddressList.should}.`);
  return parsed.data;
}
