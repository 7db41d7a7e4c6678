import Table from "cli-table3";
import type { Command } from "commander";
import type { AlertSeverity } from "../../alerts/message.ts";
import {
  type SilenceRow,
  type Silenced,
  beginSilence,
  endSilence,
  findSilence,
  listSilences,
  mostSilentHours,
} from "../../alerts/silences.ts";
import type { RuleName } from "../../alerts/settings.ts";
import { findAlert } from "../../alerts/store.ts";
import { recordAct } from "../../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";
import { shortLine } from "../../platform/free-text.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { alertSettings } from "../alerts.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, requirePerson } from "./acting-person.ts";
import { alertId, noAlert, parseRule, parseSeverity } from "./alert-arguments.ts";
import { freeText, wholeNumber } from "./arguments.ts";
import type { CliContext } from "./context.ts";

/** The commands below `alerts` by which messages wait for a time. */
export function registerSilences(alerts: Command, context: CliContext): void {
  alerts
    .command("silence")
    .description(
      "hold back the messages of an alert or a rule for a time; what still holds then is sent",
    )
    .argument("[id]", "the alert's number, or its key")
    .option("--rule <rule>", "of all alerts of this rule, such as handler_dead", parseRule)
    .option("--hours <n>", "for how long", wholeNumber(1, mostSilentHours), 8)
    .option(
      "--severity <severity>",
      "send what is more severe all the same (default: the alert's severity, or the rule's)",
      parseSeverity,
    )
    .option("--reason <text>", "for those who see the list", freeText(shortLine))
    .option("--by <name>", "who decides (default: this system's user, if a person)", parsePerson)
    .option("--json", "print JSON")
    .action((id: string | undefined, options: SilenceOptions) => begin(context, id, options));

  alerts
    .command("silences")
    .description("list the silences in force, the one that ends next first")
    .option("--all", "the newest 50, also those that are over")
    .option("--json", "print JSON")
    .action((options: { all?: boolean; json?: boolean }) => print(context, options));

  alerts
    .command("unsilence")
    .description("end a silence before its time: what it holds back is sent at once")
    .argument("<n>", "the silence's number", wholeNumber(1, 999_999_999_999_999))
    .option("--by <name>", "who decides (default: this system's user, if a person)", parsePerson)
    .action((id: number, { by }: { by?: string }) => end(context, id, by));
}

interface SilenceOptions {
  rule?: string;
  hours: number;
  severity?: AlertSeverity;
  reason?: string;
  by?: string;
  json?: boolean;
}

const actorOf = (context: CliContext, by = requirePerson(context.user())) => ({
  accountId: null,
  name: by,
  via: "command line" as const,
  address: null,
});

async function begin(
  context: CliContext,
  given: string | undefined,
  options: SilenceOptions,
): Promise<void> {
  if ((given === undefined) === (options.rule === undefined)) {
    throw new UsageError("Name an alert, or a rule with --rule.");
  }
  const actor = actorOf(context, options.by);
  const silence = await context.withRuntime(
    "alerts",
    async (runtime) => {
      const { of, severity } = await silencedBy(runtime, given, options.rule);
      const upTo = options.severity ?? severity;
      const { hours, reason = null } = options;
      return inTransaction(await runtime.db(), async (trx) => {
        const id = await beginSilence(trx, { of, upTo, hours, by: actor.name, reason });
        const subject = { kind: "silence", id: String(id) };
        await recordAct(trx, actor, {
          action: "silence.begun",
          subject,
          after: { ...of, upTo, hours },
        });
        return findSilence(trx, id);
      });
    },
    { logLevel: "warn" },
  );
  if (silence === null) return;
  context.stdout.write(
    options.json === true
      ? `${JSON.stringify(silence)}\n`
      : `Silence ${silence.id}: messages of ${nameOf(silence)} wait until ${silence.ends_at.toISOString()}, ` +
          `those up to ${silence.up_to_severity}. "node src/bin/tallyhook.js alerts unsilence ${silence.id}" ends ` +
          `it.\n`,
  );
}

/** What is to be silenced, and how severe it is. Throws `UsageError`. */
async function silencedBy(
  runtime: Runtime,
  given: string | undefined,
  rule: string | undefined,
): Promise<{ of: Silenced; severity: AlertSeverity }> {
  const db = await migratedDatabase(runtime);
  if (given === undefined) {
    const { severity } = alertSettings(runtime).rules[rule as RuleName];
    return { of: { rule: rule ?? "" }, severity };
  }
  const alert = await findAlert(db, await alertId(runtime, given));
  if (alert === null) throw noAlert(given);
  return { of: { key: alert.key }, severity: alert.severity };
}

const nameOf = ({ rule, key }: Pick<SilenceRow, "rule" | "key">): string =>
  rule === null ? withoutControls(key ?? "") : `the rule ${rule}`;

async function print(
  context: CliContext,
  { all = false, json }: { all?: boolean; json?: boolean },
): Promise<void> {
  const silences = await context.withRuntime(
    "alerts",
    async (runtime) =>
      listSilences(await migratedDatabase(runtime), { all, limit: all ? 50 : 1_000 }),
    { logLevel: "warn" },
  );
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ silences })}\n`);
    return;
  }
  if (silences.length === 0) {
    context.stdout.write("No message is held back by a silence.\n");
    return;
  }
  const table = new Table({
    head: ["n", "of", "up to", "began", "ends", "by", "why"],
    style: { head: [], border: [] },
    wordWrap: true,
  });
  for (const silence of silences) {
    const { ended_at: endedAt, ended_by: endedBy, ends_at: endsAt } = silence;
    const ends =
      endedAt === null ? endsAt.toISOString() : `${endedAt.toISOString()}, ended by ${endedBy}`;
    table.push([
      silence.id,
      nameOf(silence),
      silence.up_to_severity,
      silence.began_at.toISOString(),
      withoutControls(ends),
      withoutControls(silence.began_by),
      withoutControls(silence.reason ?? ""),
    ]);
  }
  context.stdout.write(`${table.toString()}\n`);
}

async function end(context: CliContext, id: number, by: string | undefined): Promise<void> {
  const actor = actorOf(context, by);
  const outcome = await context.withRuntime(
    "alerts",
    async (runtime) =>
      inTransaction(await migratedDatabase(runtime), async (trx) => {
        const ended = await endSilence(trx, { id, by: actor.name });
        const subject = { kind: "silence", id: String(id) };
        if (ended === "ended") await recordAct(trx, actor, { action: "silence.ended", subject });
        return ended;
      }),
    { logLevel: "warn" },
  );
  if (outcome === "unknown") {
    throw new UsageError(
      `There is no silence ${id}. "node src/bin/tallyhook.js alerts silences" lists them.`,
    );
  }
  context.stdout.write(
    outcome === "over"
      ? `Silence ${id} was over already.\n`
      : `Silence ${id} has ended: what it held back is sent at once.\n`,
  );
}
