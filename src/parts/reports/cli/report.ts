import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigurationError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import { MailNotSent } from "../../../platform/mail.ts";
import { counted } from "../../../platform/readable-text.ts";
import { mailAddressList } from "../../../platform/setting-kinds.ts";
import { readAccountMap } from "../base/account-map.ts";
import { parseDays } from "../base/period.ts";
import { monthField } from "../close/acts.ts";
import { allReports, findReport } from "../catalogue/all.ts";
import { renderAttachments, composeMail, mailFormats } from "../mail/compose-mail.ts";
import { type Format, formats } from "../render/formats.ts";
import { type ReportRequest, assertTakesAccounts, writeReport } from "../write-report.ts";
import { mailerOf, messageIdSuffix } from "../report-mail.ts";
import { reportsStandbyOf } from "../standby.ts";
import { type Field, instant, oneOf } from "../../../app/people/fields.ts";
import { parserOf, withDatabase } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { screenWidth } from "../../../app/cli/screen.ts";
import { tableText } from "../../../app/cli/table.ts";
import { openOutput } from "./report-output.ts";

interface ReportOptions {
  month?: string;
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
    .argument("[name]", "which report, or list for all of them", "list")
    .argument("[month]", "the same as --from with this month, such as 2026-10", parserOf(monthOrDays))
    .option("--from <day>", "first day, such as 2026-10-01, or a month (default: this month)")
    .option("--to <day>", "last day, included (default: today, or the end of --from's month)")
    .option("--month <month>", "the same as --from with a month", parserOf(monthOrDays))
    .option(
      "--as-of <time>",
      "from what the mirror held at that time, such as 2026-11-01T00:00:00Z (default: now)",
      parserOf(instant),
    )
    .option("--currency <code>", "only this currency, such as usd")
    .option("--format <format>", `one of ${formats.join(", ")} (default: table)`, parserOf(oneOf(formats)))
    .addOption(new Option("--json", "the same as --format json").conflicts("format"))
    .option("--out <file>", "write it to this file instead of printing it")
    .option("--accounts <file>", "account map for the journal (JSON, docs/finance.md)")
    .option(
      "--mail-to <addresses>",
      "mail it to these addresses, separated by commas, instead of printing it (default format: html)",
      parseAddresses,
    )
    .action((name: string, month: string | undefined, options: ReportOptions) =>
      name === "list"
        ? list(context, options.json === true)
        : run(context, name, { ...options, ...firstDay({ ...options, alone: month }) }),
    );
}

const monthOrDays: Field<string> = {
  ...monthField,
  wanted: `${monthField.wanted}. Days are --from 2026-10-01 --to 2026-10-15, both included`,
};

/**
 * `--from` in any of its spellings: a month may also stand alone, or follow `--month`. Throws `UsageError`, which names
 * both, for two that differ, and for a `--to` that is not the month's end.
 */
function firstDay(given: { alone: string | undefined; month?: string; from?: string; to?: string }): { from?: string } {
  const typed = (
    [
      ["", given.alone],
      ["--month ", given.month],
      ["--from ", given.from],
    ] as const
  ).flatMap(([option, value]) => (value === undefined ? [] : [{ value, text: option + value }]));
  const [first, ...others] = typed;
  if (first === undefined) return {};
  const other = others.find(({ value }) => value !== first.value);
  if (other !== undefined) {
    throw new UsageError(`${first.text} and ${other.text} contradict each other. Give one of them.`);
  }
  const month = given.alone ?? given.month;
  const { to } = given;
  if (month !== undefined && to !== undefined && to !== month && to !== parseDays({ to: month }, month).to) {
    throw new UsageError(
      `${first.text} and --to ${to} contradict each other: a month ends with its last day. Use --from ${month} --to ${to}.`,
    );
  }
  return { from: first.value };
}

function list({ stdout }: CliContext, json: boolean): void {
  if (json) {
    const rows = allReports.map(({ name, explains }) => ({ name, explains }));
    stdout.write(`${JSON.stringify(rows)}\n`);
    return;
  }
  stdout.write(tableText({ report: ({ name }) => name, answers: ({ explains }) => explains }, allReports));
}

async function run(context: CliContext, name: string, options: ReportOptions): Promise<void> {
  const report = findReport(name);
  if (options.accounts !== undefined) assertTakesAccounts(report);
  const { from, to, asOf, currency, mailTo, out } = options;
  const accounts = options.accounts === undefined ? undefined : await readAccountMap(options.accounts);
  const asked = { report, from, to, asOf, currency, accounts };
  const format = options.json === true ? "json" : options.format;
  if (mailTo !== undefined) {
    await mailReport(context, asked, { to: mailTo, format, out });
    return;
  }
  if (format === "xlsx" && out === undefined) {
    throw new UsageError("A workbook cannot be printed: add --out report.xlsx.");
  }
  await withDatabase(context, "report", async ({ db, runtime }) => {
    const standby = reportsStandbyOf(runtime);
    const output = await openOutput(context.stdout, out);
    const { timeZone, networkRegion: region } = runtime.config;
    const printed = out === undefined ? { width: screenWidth() } : {};
    try {
      const about = await writeReport(
        { db, standby, clock: runtime.serviceClock, timeZone, region, write: output.write, ...printed },
        { ...asked, format: format ?? "table" },
      );
      await output.keep(format === "csv" ? about : null, context.stderr);
    } catch (error) {
      await output.discard();
      throw error;
    }
  });
}

function parseAddresses(text: string): readonly string[] {
  const parsed = mailAddressList.schema.safeParse(text);
  if (!parsed.success) throw new InvalidArgumentError(`Use ${mailAddressList.should}.`);
  return parsed.data;
}

export interface MailOptions {
  to: readonly string[];
  format: Format | undefined;
  out: string | undefined;
}

/** Mails one report now, as the worker does by REPORTS_CRON. This also tests the mail settings. */
export async function mailReport(
  context: CliContext,
  request: Omit<ReportRequest, "format">,
  { to, format = "html", out }: MailOptions,
): Promise<void> {
  const mailed = mailFormats.find((each) => each === format);
  if (mailed === undefined) {
    throw new UsageError(`A report cannot be mailed as ${format}. Use --format with one of ${mailFormats.join(", ")}.`);
  }
  if (out !== undefined) throw new UsageError("Use --out or --mail-to, not both.");
  const { config } = context.loaded();
  if (config.mailFrom === null) {
    throw new ConfigurationError(
      "SMTP_URL and MAIL_FROM are not set. Set both: mails go through the one and come from the other.",
    );
  }
  await withDatabase(context, "report", async ({ db, runtime }) => {
    const { timeZone, networkRegion: region } = runtime.config;
    const standby = reportsStandbyOf(runtime);
    const deps = { db, standby, clock: runtime.serviceClock, timeZone, region };
    const attached = await renderAttachments(deps, request, [mailed]);
    const messageId = `${request.report.name}.${messageIdSuffix(runtime)}`;
    try {
      await mailerOf(runtime).send(composeMail([attached], { to, messageId }));
    } catch (cause) {
      if (!(cause instanceof MailNotSent)) throw cause;
      throw new UnreachableError(`${cause.message} Check SMTP_URL, MAIL_FROM and the addresses.`, {
        cause,
      });
    }
    const recipients = counted(to.length, "address", "addresses");
    context.stdout.write(`${request.report.name} was mailed to ${recipients}.\n`);
  });
}
