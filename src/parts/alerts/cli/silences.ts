import type { Command } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { silencing, unsilencing } from "../acts.ts";
import { type SilenceRow, listSilences } from "../silences.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { registerReading } from "../../../app/cli/command.ts";
import { flag } from "../../../app/people/fields.ts";
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
      reason: { flags: "--reason <text>", says: "the reason, which the list shows" },
    },
    by: deciding,
    deps: alertDeps,
    say: (silence) =>
      `Silence ${silence.id}: messages of ${nameOf(silence)} wait until ${silence.ends_at.toISOString()}, those up ` +
      `to ${silence.up_to_severity}. "${tallyhook(`alerts unsilence ${silence.id}`)}" ends it.\n`,
    json: (silence) => silence,
    hints: listHint,
  });

  const list = alerts.command("silences").description("list the silences in force, the one that ends next first");
  registerReading(list, context, {
    takes: { all: { is: flag, flags: "--all", says: "the newest 50, also those that are over" } },
    read: async ({ db }, { all }) => ({ silences: await listSilences(db, { all, limit: all ? 50 : 1_000 }) }),
    text: ({ silences }) =>
      silences.length === 0 ? "No message is held back by a silence.\n" : tableText(columns, silences),
    json: (found) => found,
  });

  registerAct(alerts, context, {
    act: unsilencing,
    name: "unsilence",
    description: "end a silence before its time: what it holds back is sent immediately",
    takes: { silence: { flags: "<n>", says: "the silence's number" } },
    by: deciding,
    deps: alertDeps,
    say: ({ id, outcome }) =>
      outcome === "over"
        ? `Silence ${id} was over already.\n`
        : `Silence ${id} has ended: what it held back is sent immediately.\n`,
    hints: { unknown: `"${tallyhook("alerts silences")}" lists them.` },
  });
}

const deciding = {
  who: "person",
  says: "name of the person who decides (default: this system's user, if a person)",
} as const;

const nameOf = ({ rule, key }: Pick<SilenceRow, "rule" | "key">): string =>
  rule === null ? withoutControls(key ?? "") : `the rule ${rule}`;

const columns: Columns<SilenceRow> = {
  n: ({ id }) => id,
  of: nameOf,
  "up to": (silence) => silence.up_to_severity,
  began: (silence) => silence.began_at,
  ends: ({ ended_at: at, ended_by: by, ends_at: due }) => (at === null ? due : `${at.toISOString()}, ended by ${by}`),
  by: (silence) => silence.began_by,
  why: ({ reason }) => reason ?? "",
};
