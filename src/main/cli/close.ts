import { type Command, InvalidArgumentError } from "commander";
import Table from "cli-table3";
import type { Knex } from "knex";
import { ActRefused } from "../../people/act.ts";
import type { Actor } from "../../people/audit.ts";
import { exitCodes, UsageError } from "../../platform/errors.ts";
import { longLine } from "../../platform/free-text.ts";
import { amountWithoutCode } from "../../platform/money.ts";
import type { ReportFacts } from "../../reports/base/report-facts.ts";
import { defaultAccounts, readAccountMap } from "../../reports/base/account-map.ts";
import {
  closing,
  closingAlone,
  preparationVersion,
  preparing,
  requireApprovable,
  withdrawing,
} from "../../reports/close/acts.ts";
import { writeBundle } from "../../reports/close/frozen.ts";
import {
  type Booked,
  type Close,
  type ClosePreview,
  type CloseRequest,
  previewClose,
} from "../../reports/close/close-month.ts";
import { takesTwo, whatIsSkipped } from "../../reports/close/four-eyes.ts";
import { findPreparation } from "../../reports/close/prepare-month.ts";
import type { NetworkRegion } from "../../reports/base/read-report.ts";
import { type CloseCheck, type SealScope, brokenSealAdvice, verifyCloses } from "../../reports/close/verify.ts";
import { earliestDay, isMonth, latestDay } from "../../reports/base/period.ts";
import { migratedDatabase } from "../schema.ts";
import { registerAct } from "./act-command.ts";
import { commandActor, findPerson, parsePerson, requirePerson } from "./acting-person.ts";
import { freeText } from "./arguments.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { openOutput } from "./report-output.ts";

interface CloseOptions {
  force?: string;
  accounts?: string;
  by?: string;
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
}

export function registerClose(program: Command, context: CliContext): void {
  const close = program
    .command("close")
    .description("freeze a month for ever: the rows of every report, under one seal")
    .argument("<month>", "such as 2026-10", parseMonth)
    .option(
      "--force <reason>",
      "close the month although it is not proved; the reason is printed on its reports",
      freeText(longLine),
    )
    .option("--accounts <file>", "account map for the journal (JSON, docs/finance.md)")
    .option(
      "--by <name>",
      "who closes it, for the record; nobody checks the name (default: this system's user, if a person)",
      parsePerson,
    )
    .option("--dry-run", "print what would be frozen, and freeze nothing")
    .option("--yes", "freeze without asking")
    .option("--json", "print one JSON object")
    .action((month: string, options: CloseOptions) => run(context, month, options));
  close
    .command("prepare")
    .description("compute a month and keep what was found, for another person to close exactly that")
    .argument("<month>", "such as 2026-10", parseMonth)
    .action((month: string, _: unknown, command: Command) =>
      prepare(context, month, command.optsWithGlobals<CloseOptions>()),
    );
  registerAct(close, context, {
    act: withdrawing,
    name: "withdraw",
    description: "take a preparation back",
    takes: { month: { flags: "<month>", says: "such as 2026-10" } },
    by: { who: "person", says: "who takes it back (default: this system's user, if a person)" },
    deps: async (runtime) => ({ db: await migratedDatabase(runtime) }),
    say: (_, { input: { month } }) => `The preparation of ${month} is withdrawn.\n`,
  });
  close
    .command("verify")
    .description("check every closed month against its seal, and each seal against the one before it")
    .option("--json", "print one JSON object")
    // Commander assigns an option that both commands have to "close", so it is read from there.
    .action((_options: unknown, command: Command) =>
      verify(context, command.optsWithGlobals<{ json?: boolean }>().json === true),
    );
  close
    .command("export")
    .description("write a closed month to a file that docs/verify-close.mjs verifies without a database")
    .argument("<month>", "such as 2026-10", parseMonth)
    .requiredOption("--out <file>", "write to this file")
    .action((month: string, { out }: { out: string }) => exportMonth(context, month, out));
}

async function run(context: CliContext, month: string, options: CloseOptions): Promise<void> {
  const isAsking = options.yes !== true && options.dryRun !== true;
  if (isAsking) assertCanAsk(context);
  const user = context.user();
  const by = options.by ?? (options.dryRun === true ? (findPerson(user) ?? "whoever --by names") : requirePerson(user));
  const accounts = options.accounts === undefined ? defaultAccounts : await readAccountMap(options.accounts);
  await context.withRuntime(
    "close",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const { timeZone, networkRegion: region, closeFourEyes } = runtime.config;
      if (takesTwo(closeFourEyes, "command") && options.dryRun !== true) {
        assertOnlyApproves(options);
        const actor = commandActor(context, by);
        const close = await approve(context, { db, timeZone, region }, { month, actor, isAsking });
        context.stdout.write(options.json === true ? `${JSON.stringify(close)}\n` : closedText(close));
        return;
      }
      const request: CloseRequest = {
        month,
        timeZone,
        accounts,
        region,
        reason: options.force ?? null,
        by,
      };
      if (options.dryRun === true) {
        const preview = await previewClose(db, request);
        const text = options.json === true ? `${JSON.stringify(preview)}\n` : previewText(preview);
        context.stdout.write(text);
        if (preview.refusal !== null) throw new UsageError(preview.refusal);
        return;
      }
      const standing = await findPreparation(db, month);
      context.stderr.write(whatIsSkipped(closeFourEyes, { month, by, standing }) ?? "");
      let shown: ClosePreview | undefined;
      if (isAsking) {
        shown = await previewClose(db, request);
        if (shown.refusal !== null) throw new UsageError(shown.refusal);
        context.stderr.write(previewText(shown));
        await confirm(context, `Freeze ${month} for ever?`);
      }
      const close = await closingAlone.run(
        { db, timeZone, region, accounts, shown: shown ?? null },
        {
          actor: commandActor(context, by),
          input: { month, reason: request.reason },
          decidedOn: null,
        },
      );
      context.stdout.write(options.json === true ? `${JSON.stringify(close)}\n` : closedText(close));
    },
    { logLevel: "warn" },
  );
}

/** What was prepared is closed, so nothing of it can be said otherwise. */
function assertOnlyApproves({ force, accounts }: CloseOptions): void {
  if (force === undefined && accounts === undefined) return;
  throw new UsageError(
    "REPORTS_CLOSE_FOUR_EYES is always: --force and --accounts are for close prepare, and close takes what was prepared.",
  );
}

/** Closes what another person prepared. */
async function approve(
  context: CliContext,
  settings: { db: Knex; timeZone: string; region: NetworkRegion },
  { month, actor, isAsking }: { month: string; actor: Actor; isAsking: boolean },
): Promise<Close> {
  const deps = { ...settings, fourEyes: true };
  const call = { actor, input: { month }, decidedOn: null };
  const preparation = await requireApprovable(deps, call).catch((error: unknown) => {
    if (!(error instanceof ActRefused) || error.refusal !== "hindered") throw error;
    const hint =
      "Two people close a month (REPORTS_CLOSE_FOUR_EYES is always): one runs " +
      `"node src/bin/tallyhook.js close prepare ${month} --by NAME", then another closes it.`;
    throw new UsageError(`${error.message} ${hint}`, { cause: error });
  });
  if (isAsking) {
    context.stderr.write(previewText({ ...preparation, by: actor.name }));
    await confirm(context, `Freeze ${month} for ever, as ${preparation.preparedBy.name} prepared it?`);
  }
  return closing.run(deps, { ...call, decidedOn: preparationVersion(preparation) });
}

async function prepare(context: CliContext, month: string, options: CloseOptions): Promise<void> {
  const actor = commandActor(context, options.by);
  const accounts = options.accounts === undefined ? defaultAccounts : await readAccountMap(options.accounts);
  await context.withRuntime(
    "close",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const { timeZone, networkRegion: region } = runtime.config;
      const input = { month, reason: options.force ?? null };
      const call = { actor, input, decidedOn: null };
      const preparation = await preparing.run({ db, timeZone, region, accounts }, call);
      const { id, asOf, verdict } = preparation;
      context.stdout.write(
        options.json === true
          ? `${JSON.stringify(preparation)}\n`
          : `${reportsTable(preparation.reports)}${bookedTable(preparation.booked)}` +
              `${month} is prepared as of ${asOf} by ${actor.name}: ${verdict}. Preparation ${id}; another person closes it.\n`,
      );
    },
    { logLevel: "warn" },
  );
}

const plain = { head: [], border: [] };

function reportsTable(reports: readonly ReportFacts[]): string {
  const table = new Table({ head: ["report", "verdict", "rows", "SHA-256"], style: plain });
  for (const { report, proof, rows, sha256 } of reports) {
    table.push([report, proof.verdict, rows, sha256]);
  }
  return `${table.toString()}\n`;
}

function bookedTable(booked: readonly Booked[]): string {
  if (booked.length === 0) return "No movement is booked in this month.\n";
  const table = new Table({ head: ["currency", "booked", "movements", "amount"], style: plain });
  for (const { currency, kind, isLate, movements, amount } of booked) {
    const said = isLate ? `${kind}, of closed months` : kind;
    table.push([currency, said, movements, amountWithoutCode(amount, currency)]);
  }
  return `${table.toString()}\n`;
}

function previewText(preview: Omit<ClosePreview, "refusal">): string {
  const { month, asOf, verdict, reason, by, reports, booked } = preview;
  return (
    `${reportsTable(reports)}${bookedTable(booked)}` +
    `${month} as of ${asOf}: ${verdict}${reason === null ? "" : `, forced: ${reason}`}; closed by ${by}.\n`
  );
}

function closedText(close: Close): string {
  const { id, month, asOf, closedAt, closedBy, verdict, sha256, previousSha256, reports } = close;
  const prepared = close.preparedBy === undefined ? "" : `, prepared by ${close.preparedBy},`;
  return (
    `${reportsTable(reports)}${month} is closed as of ${asOf}: ${verdict}.\n` +
    `Close ${id}, by ${closedBy}${prepared} at ${closedAt}.\n` +
    `Seal (SHA-256): ${sha256}\n` +
    `Seal of the close before: ${previousSha256 ?? "none, this is the first close"}\n`
  );
}

const coversInWords: Readonly<Record<SealScope, string>> = {
  rows: "the rows of the reports (earlier version)",
  results: "results and rows of the reports (earlier version)",
  everything: "everything",
};

async function verify(context: CliContext, isJson: boolean): Promise<void> {
  const { closes, problems } = await context.withRuntime(
    "close",
    async (runtime) => verifyCloses(await migratedDatabase(runtime)),
    { logLevel: "warn" },
  );
  const isIntact = problems.length === 0 && closes.every((close) => close.problems.length === 0);
  context.stdout.write(
    isJson ? `${JSON.stringify({ intact: isIntact, closes, problems })}\n` : verifiedText(closes, problems, isIntact),
  );
  if (!isIntact) process.exitCode = exitCodes.differs;
}

function verifiedText(closes: readonly CloseCheck[], problems: readonly string[], isIntact: boolean): string {
  if (closes.length === 0 && isIntact) return "No month is closed.\n";
  const table = new Table({
    head: ["month", "closed", "by", "verdict", "seal covers", "seal (SHA-256)", "result"],
    style: plain,
  });
  for (const check of closes) {
    const { month, closedAt, closedBy, verdict, covers, sha256, problems: own } = check;
    const prepared = check.preparedBy === null ? "" : `, prepared by ${check.preparedBy}`;
    const result = own.length === 0 ? "intact" : "DIFFERS";
    table.push([
      month,
      closedAt,
      `${closedBy ?? "not kept"}${prepared}`,
      verdict,
      coversInWords[covers],
      sha256,
      result,
    ]);
  }
  const lines = closes.flatMap(({ month, problems: own }) => own.map((problem) => `${month}: ${problem}`));
  const all = [...lines, ...problems].map((line) => `${line}.\n`).join("");
  const end = isIntact
    ? "Every closed month is what was sealed. Compare the newest seal with the one that was signed.\n"
    : `Closed months are not what was sealed. ${brokenSealAdvice}\n`;
  return `${table.toString()}\n${all}${end}`;
}

async function exportMonth(context: CliContext, month: string, out: string): Promise<void> {
  await context.withRuntime(
    "close",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const output = await openOutput(context.stdout, out);
      try {
        const { sha256 } = await writeBundle(db, month, output.write);
        await output.keep(null, context.stderr);
        context.stdout.write(
          `${out} holds the close of ${month}, seal (SHA-256) ${sha256}. "node docs/verify-close.mjs ${out}" ` +
            `verifies it on any machine.\n`,
        );
      } catch (error) {
        await output.discard();
        throw error;
      }
    },
    { logLevel: "warn" },
  );
}

function parseMonth(text: string): string {
  const [first, last] = [earliestDay.slice(0, 7), latestDay.slice(0, 7)];
  if (isMonth(text)) return text;
  throw new InvalidArgumentError(`Use a month such as 2026-10, from ${first} to ${last}.`);
}
