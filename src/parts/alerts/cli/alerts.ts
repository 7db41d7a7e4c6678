import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { keepsIncidents, tryOpen } from "../channels/channel-kinds.ts";
import { type Channel, DeliveryFailed } from "../channels/channel.ts";
import { acknowledging, alertNamed, resending } from "../acts.ts";
import { alertList } from "../alert-list.ts";
import { runbookOf } from "../message.ts";
import { sampleMessages } from "../sample-messages.ts";
import { unknownChannel } from "../settings.ts";
import { type AlertDetails, type AlertRow, alertStates, countAlerts, findAlert } from "../store.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import { startDeadline } from "../../../platform/http/exchange.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import { alertChannelDeps, alertSettings, createAlertContext } from "../run-alerts.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { alertDeps, listHint } from "./alert-arguments.ts";
import { flag, reference } from "../../../app/people/fields.ts";
import { registerReading } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { registerList } from "../../../app/cli/list-command.ts";
import type { Columns } from "../../../app/cli/table.ts";
import { registerSilences } from "./silences.ts";

export function registerAlerts(program: Command, context: CliContext): void {
  const alerts = program.command("alerts");

  registerList(alerts.command("list").description("list the newest alerts that are not resolved"), context, {
    list: alertList,
    columns,
    short: {
      takes: { all: { is: flag, flags: "--all", says: "in every state", conflicts: "state" } },
      means: ({ all }) => (all ? { state: "all" as const } : {}),
    },
    more: countAlerts,
    text(counts) {
      const totals = alertStates.map((state) => `${state} ${counts[state] ?? 0}`);
      return `All alerts: ${totals.join(", ")}.\n`;
    },
    json: (alerts, counts) => ({ alerts, counts }),
  });

  registerReading(alerts.command("show").description("show one alert with its timeline and its messages"), context, {
    takes: { alert: { is: reference, flags: "<id>", says: "its number, or its key" } },
    async read({ db, runtime }, { alert: given }) {
      const id = await alertNamed(db, given);
      const alert = id === null ? null : await findAlert(db, id);
      if (alert === null) throw new UsageError(`There is no alert "${given}". ${listHint.unknown}`);
      return { ...alert, runbook: runbookOf(alert.rule, runtime.config.runbooksUrl) };
    },
    text: textOf,
    json: (alert) => alert,
  });

  registerAct(alerts, context, {
    act: acknowledging,
    name: "ack",
    description: "acknowledge an alert: it no longer escalates, and its channels are notified who works on it",
    takes: {
      alert: { flags: "<id>", says: "its number, or its key" },
      note: { flags: "--note <text>", says: "what is done about it" },
    },
    by: { who: "person", says: "name of the person who works on it (default: this system's user, if a person)" },
    deps: alertDeps,
    say: ({ id, outcome }, { actor }) =>
      outcome === "already"
        ? `Alert ${id} was acknowledged already.\n`
        : `Alert ${id} is acknowledged by ${actor.name}.\n`,
    json: ({ id, outcome }) => ({ id: Number(id), outcome }),
    hints: listHint,
  });

  registerAct(alerts, context, {
    act: resending,
    name: "resend",
    description: "send again the messages that were given up, of an alert or to a channel",
    takes: {
      alert: { flags: "[id]", says: "the alert's number, or its key" },
      channel: { flags: "--channel <name>", says: "those to this channel" },
      hours: { flags: "--hours <n>", says: "only those of the last so many hours", default: "72" },
    },
    by: { who: "script", says: "name of the person who does this, for the audit" },
    deps: alertDeps,
    say: ({ messages }, { input }) => `${saidOf(messages, input.hours)}\n`,
    json: ({ messages }) => ({ messages }),
  });

  registerSilences(alerts, context);

  alerts
    .command("test")
    .description("send messages marked TEST to one channel, and print what it answered")
    .argument("<channel>", "its name in the settings")
    .option("--all", "one for each rule and transition, instead of one for each severity")
    .action((channel: string, options: TestOptions) => testChannel(context, channel, options));
}

const columns: Columns<AlertRow> = {
  id: ({ id }) => id,
  severity: ({ severity }) => severity,
  state: (alert) => (alert.silenced_until === null ? alert.state : `${alert.state}, silenced`),
  stage: ({ stage }) => stage,
  opened: (alert) => alert.opened_at,
  what: (alert) => titleOf(alert),
};

export const titleOf = ({ facts, key }: Pick<AlertRow, "facts" | "key">): string =>
  typeof facts["title"] === "string" ? facts["title"] : key;

function textOf(details: AlertDetails & { runbook: string }): string {
  const { history, messages, digests, stormListings, facts, runbook, ...alert } = details;
  const lines = [withoutControls(titleOf({ facts, key: alert.key })), ""];
  for (const [name, value] of Object.entries({ ...alert, ...facts })) {
    if (name === "title" || name === "advice" || value === null) continue;
    const text = value instanceof Date ? value.toISOString() : String(value);
    lines.push(`${name.padEnd(18)} ${withoutControls(text)}`);
  }
  const advice = facts["advice"];
  if (typeof advice === "string" && advice !== "") lines.push("", `What to do: ${withoutControls(advice)}`);
  lines.push("", `Runbook: ${runbook}`);
  lines.push("", "Timeline");
  for (const { at, change, stage, found_by: foundBy } of history) {
    lines.push(`  ${at.toISOString()}  ${change.padEnd(12)} ${stage.padEnd(16)} ${foundBy}`);
  }
  const isTold = messages.length + digests.length + stormListings.length > 0;
  lines.push("", isTold ? "Messages" : "No message was queued.");
  for (const { channel, stage, told_at: at } of digests) {
    const when = at === null ? "waits for the next list" : `listed ${at.toISOString()}`;
    lines.push(`  ${channel.padEnd(16)} ${"digest".padEnd(12)} ${stage.padEnd(16)} ${when}`);
  }
  for (const { channel, stage, action, state, attempts, last_error: error } of messages) {
    const failure = error === null ? "" : `: ${withoutControls(error)}`;
    lines.push(
      `  ${channel.padEnd(16)} ${action.padEnd(12)} ${stage.padEnd(16)} ${state}, attempts ${attempts}${failure}`,
    );
  }
  for (const { channel, stage, told_how: how, storm_id: storm, told_at: at } of stormListings) {
    const when = at === null ? "not yet" : at.toISOString();
    lines.push(
      `  ${channel.padEnd(16)} ${"in a storm".padEnd(12)} ${stage.padEnd(16)} ${how} (alert ${storm}), ${when}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function saidOf(messages: Readonly<Record<string, number>>, hours: number): string {
  const parts = Object.entries(messages).map(([channel, count]) => `${channel} ${count}`);
  return parts.length === 0
    ? `No message of the last ${hours} hours was given up.`
    : `Workers send again: ${parts.join(", ")}. What has ended since is left out.`;
}

const sendTimeoutMs = 15_000;

export interface TestOptions {
  all?: boolean;
}

/**
 * Sends test messages with invented facts to a channel: one of each severity, or one for every transition of every
 * rule. Prints the channel's answer. Needs no database.
 */
export async function testChannel(context: CliContext, name: string, { all }: TestOptions): Promise<void> {
  await context.withRuntime(
    "alerts",
    async (runtime) => {
      const settings = alertSettings(runtime);
      const chosen = Object.hasOwn(settings.channels, name) ? settings.channels[name] : undefined;
      if (chosen === undefined) {
        throw new UsageError(unknownChannel(name, Object.keys(settings.channels)));
      }
      const { channel, problem } = tryOpen(chosen, alertChannelDeps(runtime, settings));
      if (problem !== undefined) throw new ConfigurationError(`Channel "${name}": ${problem}.`);
      runtime.onClose(() => channel.close());
      const samples = sampleMessages(createAlertContext(runtime), {
        channel: name,
        run: randomUUID(),
        at: runtime.wallClock.now(),
        all: all === true,
        endsAll: keepsIncidents(chosen.kind),
      });
      for (const { what, message } of samples) {
        const answer = await sendSample(name, channel, message);
        const line = `${message.severity.padEnd(9)} ${what.padEnd(38)} ${answer}`;
        context.stdout.write(`${line}\n`);
      }
      context.stdout.write(`Channel "${name}" accepted ${counted(samples.length, "message")}, marked TEST.\n`);
    },
    { logLevel: "silent" },
  );
}

async function sendSample(name: string, channel: Channel, message: Parameters<Channel["send"]>[0]): Promise<string> {
  const deadline = startDeadline(sendTimeoutMs, []);
  try {
    return await channel.send(message, { signal: deadline.signal });
  } catch (error) {
    if (!(error instanceof DeliveryFailed)) throw error;
    throw new UnreachableError(`Channel "${name}" did not accept the message: ${error.message}.`, {
      cause: error,
    });
  } finally {
    deadline.dispose();
  }
}
