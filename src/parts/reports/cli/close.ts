import type { Command } from "commander";
import type { Actor } from "../../../app/people/audit.ts";
import { UsageError } from "../../../platform/errors.ts";
import { amountWithoutCode } from "../../../platform/money.ts";
import { type AccountMap, defaultAccounts, readAccountMap } from "../base/account-map.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import {
  type CloseDeps,
  closing,
  closingAlone,
  monthField,
  preparing,
  versionOfPreparation,
  withdrawing,
} from "../close/acts.ts";
import { type Booked, type Close, type ClosePreview, previewClose } from "../close/close-month.ts";
import { takesTwo } from "../close/four-eyes.ts";
import { writeBundle } from "../close/frozen.ts";
import { type Preparation, findPreparation, whyNotApprove } from "../close/prepare-month.ts";
import { type CloseCheck, type SealScope, brokenSealAdvice, verifyCloses } from "../close/verify.ts";
import { registerAct, takeAct } from "../../../app/cli/act-command.ts";
import { type Opened, parserOf, registerReading, withDatabase } from "../../../app/cli/command.ts";
import { commandActor, findPerson, parsePerson } from "../../../app/cli/acting-person.ts";
import { notPrepared, refusalText, whatIsSkipped, withCommands } from "./close-words.ts";
import { assertCanAsk, confirm } from "../../../app/cli/confirm.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";
import { openOutput } from "./report-output.ts";

interface MonthToClose {
  month: string;
  reason: string | null;
}

interface CloseOptions {
  accounts?: string;
  by?: string;
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
}

const says = {
  month: { flags: "<month>", says: "such as 2026-10" },
  force: {
    flags: "--force <reason>",
    says: "close the month although it is not proved; the reason is printed on its reports",
  },
  accounts: {
    flags: "--accounts <file>",
    says: "account map for the journal (JSON, docs/finance.md)",
  },
} as const;

const by = {
  who: "person",
  says:
    "name of the person who does this, for the audit; the name is not checked (default: this system's user, if a " +
    "person)",
} as const;

export function registerClose(program: Command, context: CliContext): void {
  const close = program.command("close");
  const inputOf = takeAct(close, closingAlone, { month: says.month, reason: says.force });
  close
    .option(says.accounts.flags, says.accounts.says)
    .option("--by <name>", by.says, parsePerson)
    .option("--dry-run", "print what would be frozen, and freeze nothing")
    .option("--yes", "freeze without asking")
    .option("--json", "print one JSON object")
    .action(() => run(context, inputOf(), close.opts<CloseOptions>()));
  registerAct(close, context, {
    act: withCommands(preparing),
    name: "prepare",
    description: "compute a month and keep the result, for another person to close exactly that",
    takes: { month: says.month, reason: says.force },
    by,
    deps: async (opened, { accounts }) => ({
      ...closeDeps(opened),
      accounts: await accountsIn(accounts),
    }),
    say: ({ id, month, asOf, verdict, reports, booked, preparedBy }) =>
      `${reportsTable(reports)}${bookedTable(booked)}${month} is prepared as of ${asOf} by ${preparedBy.name}: ` +
      `${verdict}. Preparation ${id}; another person closes it.\n`,
    json: (preparation) => preparation,
  }).option(says.accounts.flags, says.accounts.says);
  registerAct(close, context, {
    act: withdrawing,
    name: "withdraw",
    description: "take a preparation back",
    takes: { month: says.month },
    by,
    deps: ({ db }) => ({ db }),
    say: ({ month }) => `The preparation of ${month} is withdrawn.\n`,
  });
  const verify = close
    .command("verify")
    .description("check every closed month against its seal, and each seal against the one before it");
  registerReading(verify, context, {
    async read({ db }) {
      const { closes, problems } = await verifyCloses(db);
      const intact = problems.length === 0 && closes.every((each) => each.problems.length === 0);
      return { intact, closes, problems };
    },
    text: verifiedText,
    json: (found) => found,
    differs: ({ intact }) => !intact,
  });
  close
    .command("export")
    .description("write a closed month to a file that docs/verify-close.mjs verifies without a database")
    .argument("<month>", "such as 2026-10", parserOf(monthField))
    .requiredOption("--out <file>", "write to this file")
    .action((month: string, { out }: { out: string }) => exportMonth(context, month, out));
}

/**
 * The door is written by hand: a dry run is no act and needs no actor, and the preview, which takes minutes, is computed
 * only to ask about it.
 */
async function run(context: CliContext, { month, reason }: MonthToClose, options: CloseOptions): Promise<void> {
  const { dryRun = false } = options;
  const isAsking = options.yes !== true && !dryRun;
  if (isAsking) assertCanAsk(context);
  const actor = dryRun ? null : commandActor(context, options.by);
  const accounts = await accountsIn(options.accounts);
  const print = (json: unknown, text: string): void => {
    context.stdout.write(options.json === true ? `${JSON.stringify(json)}\n` : text);
  };
  await withDatabase(context, "close", async (opened) => {
    const deps = closeDeps(opened);
    const previewed = (by: string) => previewClose(deps.db, { ...deps, month, accounts, reason, by });
    if (actor === null) {
      const preview = await previewed(options.by ?? findPerson(context.user()) ?? "whoever --by names");
      const refusal = preview.refusal === null ? null : refusalText(preview.refusal);
      print({ ...preview, refusal }, previewText(preview));
      if (refusal !== null) throw new UsageError(refusal);
      return;
    }
    const { closeFourEyes } = opened.runtime.config;
    const standing = await findPreparation(deps.db, month);
    let close: Close;
    if (takesTwo(closeFourEyes, "command")) {
      assertOnlyApproves(reason, options);
      const shown = await shownPreparation(context, { month, standing, actor, isAsking });
      const call = { actor, input: { month }, decidedOn: versionOfPreparation(shown) };
      close = await withCommands(closing).run({ ...deps, fourEyes: true }, call);
    } else {
      const skipped = whatIsSkipped(closeFourEyes, { month, by: actor.name, standing });
      context.stderr.write(skipped ?? "");
      const shown = isAsking ? await previewed(actor.name) : undefined;
      if (shown !== undefined) await askToFreeze(context, shown);
      const call = { actor, input: { month, reason }, decidedOn: null };
      close = await withCommands(closingAlone).run({ ...deps, accounts, shown }, call);
    }
    print(close, closedText(close));
  });
}

const closeDeps = ({ db, runtime }: Opened): CloseDeps => ({
  db,
  timeZone: runtime.config.timeZone,
  region: runtime.config.networkRegion,
});

const accountsIn = async (file: unknown): Promise<AccountMap> =>
  typeof file === "string" ? readAccountMap(file) : defaultAccounts;

/** A prepared close takes its facts from the preparation, so these options are refused. */
function assertOnlyApproves(reason: string | null, { accounts }: CloseOptions): void {
  if (reason === null && accounts === undefined) return;
  throw new UsageError(
    "REPORTS_CLOSE_FOUR_EYES is always: --force and --accounts are for close prepare, and close takes what was " +
      "prepared.",
  );
}

/** Another person's preparation, after it was shown and confirmed. */
async function shownPreparation(
  context: CliContext,
  {
    month,
    standing,
    actor,
    isAsking,
  }: { month: string; standing: Preparation | null; actor: Actor; isAsking: boolean },
): Promise<Preparation> {
  if (standing === null) throw notPrepared(month);
  const refusal = whyNotApprove({ preparation: standing, by: actor, fourEyes: true });
  if (refusal !== null) throw refusal;
  if (isAsking) {
    context.stderr.write(previewText({ ...standing, by: actor.name }));
    const question = `Freeze ${month} permanently, as ${standing.preparedBy.name} prepared it?`;
    await confirm(context, question);
  }
  return standing;
}

async function askToFreeze(context: CliContext, shown: ClosePreview): Promise<void> {
  if (shown.refusal !== null) throw new UsageError(refusalText(shown.refusal));
  context.stderr.write(previewText(shown));
  await confirm(context, `Freeze ${shown.month} permanently?`);
}

const reportColumns: Columns<ReportFacts> = {
  report: ({ report }) => report,
  verdict: ({ proof }) => proof.verdict,
  rows: ({ rows }) => rows,
  "SHA-256": ({ sha256 }) => sha256,
};

const reportsTable = (reports: readonly ReportFacts[]): string => tableText(reportColumns, reports);

function bookedTable(booked: readonly Booked[]): string {
  if (booked.length === 0) return "No movement is booked in this month.\n";
  return tableText(bookedColumns, booked);
}

const bookedColumns: Columns<Booked> = {
  currency: ({ currency }) => currency,
  booked: ({ kind, isLate }) => (isLate ? `${kind}, of closed months` : kind),
  movements: ({ movements }) => movements,
  amount: ({ amount, currency }) => amountWithoutCode(amount, currency),
};

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

interface Verified {
  intact: boolean;
  closes: readonly CloseCheck[];
  problems: readonly string[];
}

function verifiedText({ intact: isIntact, closes, problems }: Verified): string {
  if (closes.length === 0 && isIntact) return "No month is closed.\n";
  const lines = closes.flatMap(({ month, problems: own }) => own.map((problem) => `${month}: ${problem}`));
  const all = [...lines, ...problems].map((line) => `${line}.\n`).join("");
  const end = isIntact
    ? "Every closed month matches its seal. Compare the newest seal with the one that was signed.\n"
    : `A closed month no longer matches its seal. ${brokenSealAdvice}\n`;
  return `${tableText(checkColumns, closes)}${all}${end}`;
}

const checkColumns: Columns<CloseCheck> = {
  month: ({ month }) => month,
  closed: ({ closedAt }) => closedAt,
  by: ({ closedBy, preparedBy }) =>
    (closedBy ?? "not kept") + (preparedBy === null ? "" : `, prepared by ${preparedBy}`),
  verdict: ({ verdict }) => verdict,
  "seal covers": ({ covers }) => coversInWords[covers],
  "seal (SHA-256)": ({ sha256 }) => sha256,
  result: ({ problems }) => (problems.length === 0 ? "intact" : "DIFFERS"),
};

async function exportMonth(context: CliContext, month: string, out: string): Promise<void> {
  await withDatabase(context, "close", async ({ db }) => {
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
  });
}
