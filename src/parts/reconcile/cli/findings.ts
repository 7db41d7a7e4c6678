import type { Command } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { moneyText } from "../../../platform/money.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { acknowledgingFinding } from "../acts.ts";
import { type FindingRow, countFindings, findFinding } from "../findings/findings.ts";
import { findingList } from "../findings/finding-list.ts";
import { flag, rowNumber } from "../../../app/people/fields.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { registerReading } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { registerList } from "../../../app/cli/list-command.ts";
import { type Columns, fieldsText } from "../../../app/cli/table.ts";

export function registerFindings(program: Command, context: CliContext): void {
  const findings = program.command("findings");

  registerList(findings.command("list").description("list the open findings, the most severe first"), context, {
    list: findingList,
    columns,
    short: {
      takes: { all: { is: flag, flags: "--all", says: "in every state, the newest first", conflicts: "state" } },
      means: ({ all }) => (all ? { state: "any" as const } : {}),
    },
    more: countFindings,
    text(counts) {
      const totals = Object.entries(counts).map(([name, n]) => `${name} ${n}`);
      return `All findings: ${totals.join(", ")}.\n`;
    },
    json: (found, counts) => ({ findings: found, counts }),
  });

  registerReading(findings.command("show").description("show one finding with its evidence"), context, {
    takes: { id: { is: rowNumber, flags: "<id>", says: "its number" } },
    async read({ db }, { id }) {
      const found = await findFinding(db, id);
      if (found === null) throw new UsageError(`There is no finding "${id}". ${listHint}`);
      return found;
    },
    text: (found) => fieldsText(found, 22),
    json: (found) => found,
  });

  registerAct(findings, context, {
    act: acknowledgingFinding,
    name: "ack",
    description: "acknowledge a finding: no report fails because of it, until it changes, or heals and comes back",
    takes: {
      finding: { flags: "<id>", says: "its number" },
      note: { flags: "--note <text>", says: "why it may stay; the exceptions report prints it" },
    },
    by: { who: "person", says: "name of the person who decides (default: this system's user, if a person)" },
    deps: ({ db, runtime }) => ({ db, clock: runtime.wallClock }),
    say: ({ id }, { actor }) => `Finding ${id} is acknowledged by ${withoutControls(actor.name)}.\n`,
    hints: { unknown: listHint },
  });
}

const columns: Columns<FindingRow> = {
  id: ({ id }) => id,
  severity: ({ mode, severity }) => (mode === "observe" ? `${severity}, observed` : severity),
  state: ({ state }) => state,
  what: (row) => row.identity ?? row.class,
  object: ({ resource, object_id: id }) => (resource === null ? null : `${resource} ${id ?? ""}`),
  "at risk": (row) => (row.amount_at_risk_minor === null ? null : moneyText(row.amount_at_risk_minor, row.currency)),
  "first seen": (row) => row.first_seen,
};

const listHint = `"${tallyhook("findings list --all")}" shows them.`;
