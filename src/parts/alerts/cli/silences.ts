import type { Command } from "commander";
import { silencing, unsilencing } from "../acts.ts";
import { type SilenceRow, listSilences } from "../silences.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { migratedDatabase } from "../../../main/schema.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { alertDeps, listHint } from "./alert-arguments.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

/** The commands below `alerts` by which messages wait for a time. */
export function registerSilences(alerts: Command, context: CliContext): void {
  registerAct(alerts, context, {
    act: silencing,
    name: "silence",
    description: "hold back the messages of an alert or a rule for a time; what still holds then is sent",
    takes: {
      alert: { flags: "[id]", says: "the alert's number, or its key" },
      rule: { flags: "--rule <rule>", says: "of all alerts of this rule, such as handler_dead" },
      hours: { flags: "--hours <n>", says: "for how long", default: "8" },
      upTo: {
        flags: "--severity <severity>",
        says: "send what is more severe (default: the alert's severity, or the rule's)",
      },
      reason: { flags: "--reason <text>", says: "for those who see the list" },
    },
    by: deciding,
    deps: alertDeps,
    say: (silence) =>
      `Silence ${silence.id}: messages of ${nameOf(silence)} wait until ${silence.ends_at.toISOString()}, ` +
      `those up to ${silence.up_to_severity}. "node src/bin/tallyhook.js alerts unsilence ${silence.id}" ends it.\n`,
    json: (silence) => silence,
    hints: listHint,
  });

  alerts
    .command("silences")
    .description("list the silences in force, the one that ends next first")
    .option("--all", "the newest 50, also those that are over")
    .option("--json", "print JSON")
    .action((options: { all?: boolean; json?: boolean }) => print(context, options));

  registerAct(alerts, context, {
    act: unsilencing,
    name: "unsilence",
    description: "end a silence before its time: what it holds back is sent at once",
    takes: { silence: { flags: "<n>", says: "the silence's number" } },
    by: deciding,
    deps: alertDeps,
    say: ({ id, outcome }) =>
      outcome === "over"
        ? `Silence ${id} was over already.\n`
        : `Silence ${id} has ended: what it held back is sent at once.\n`,
    hints: { unknown: '"node src/bin/tallyhook.js alerts silences" lists them.' },
  });
}

const deciding = {
  who: "person",
  says: "who decides (default: this system's user, if a person)",
} as const;

const nameOf = ({ rule, key }: Pick<SilenceRow, "rule" | "key">): string =>
  rule === null ? withoutControls(key ?? "") : `the rule ${rule}`;

async function print(context: CliContext, { all = false, json }: { all?: boolean; json?: boolean }): Promise<void> {
  const silences = await context.withRuntime(
    "alerts",
    async (runtime) => listSilences(await migratedDatabase(runtime), { all, limit: all ? 50 : 1_000 }),
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
  context.stdout.write(tableText(columns, silences));
}

const columns: Columns<SilenceRow> = {
  n: ({ id }) => id,
  of: nameOf,
  "up to": (silence) => silence.up_to_severity,
  began: (silence) => silence.began_at,
  ends: ({ ended_at: at, ended_by: by, ends_at: due }) => (at === null ? due : `${at.toISOString()}, ended by ${by}`),
  by: (silence) => silence.began_by,
  why: ({ reason }) => reason ?? "",
};
