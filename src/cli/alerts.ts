import type { Command } from "commander";
import { Option } from "commander";
import { parsePerson } from "./acting-person.ts";
import { acknowledge } from "./alerts/ack.ts";
import type { AckOptions } from "./alerts/ack.ts";
import { parseRule, parseSeverity, parseState, printAlerts } from "./alerts/list.ts";
import type { ListOptions } from "./alerts/list.ts";
import { resend } from "./alerts/resend.ts";
import type { ResendOptions } from "./alerts/resend.ts";
import { printAlert } from "./alerts/show.ts";
import { testChannel } from "./alerts/test.ts";
import type { TestOptions } from "./alerts/test.ts";
import type { CliContext } from "./context.ts";
import { wholeNumber } from "./whole-number.ts";

export function registerAlerts(program: Command, context: CliContext): void {
  const alerts = program
    .command("alerts")
    .description("what people are told: declines, chargebacks, silence, drift");

  alerts
    .command("list")
    .description("the newest alerts that are not resolved")
    .option("--state <state>", "open, acknowledged or resolved", parseState)
    .addOption(new Option("--all", "in every state").conflicts("state"))
    .option("--rule <rule>", "of one rule, such as dunning_final", parseRule)
    .option("--severity <severity>", "critical, error, warning or info", parseSeverity)
    .option("--limit <n>", "how many", wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action((options: ListOptions) => printAlerts(context, options));

  alerts
    .command("show")
    .description("one alert with its life and its messages")
    .argument("<id>", "its number, or its key")
    .option("--json", "print JSON")
    .action((id: string, options: { json?: boolean }) => printAlert(context, id, options));

  alerts
    .command("ack")
    .description("take an alert: it no longer escalates, and the channels hear who has it")
    .argument("<id>", "its number, or its key")
    .option("--by <name>", "who takes it (default: this system's user, if a person)", parsePerson)
    .option("--note <text>", "what is done about it")
    .option("--json", "print JSON")
    .action((id: string, options: AckOptions) => acknowledge(context, id, options));

  alerts
    .command("resend")
    .description("send again what was given up, of an alert or to a channel")
    .argument("[id]", "the alert's number, or its key")
    .option("--channel <name>", "what was given up on this channel")
    .option("--hours <n>", "only of the last so many hours", wholeNumber(1, 8_760), 72)
    .option("--json", "print JSON")
    .action((id: string | undefined, options: ResendOptions) => resend(context, id, options));

  alerts
    .command("test")
    .description("send messages marked TEST to one channel, and say what it answered")
    .argument("<channel>", "its name in the settings")
    .option("--all", "of every rule and stage, instead of one of each severity")
    .action((channel: string, options: TestOptions) => testChannel(context, channel, options));
}
