import type { Command } from "commander";
import { type AuditRow, changedValues } from "../../app/people/audit.ts";
import { auditList } from "../../app/people/audit-list.ts";
import { type Field, optional } from "../../app/people/fields.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { registerList } from "../../app/cli/list-command.ts";
import type { Columns } from "../../app/cli/table.ts";

export function registerAudit(program: Command, context: CliContext): void {
  const command = program.command("audit").command("list").description("list acts, the newest first");
  registerList(command, context, {
    list: auditList,
    columns,
    short: {
      takes: {
        subject: {
          is: optional(subject),
          flags: "--subject <kind:id>",
          says: "only on this, such as event:17 or account",
          conflicts: ["kind", "id"],
        },
      },
      means: ({ subject: on }) => on ?? {},
    },
    none: "No act matches.",
  });
}

const columns: Columns<AuditRow> = {
  id: ({ id }) => id,
  when: ({ at }) => at,
  who: ({ actor }) => actor,
  what: ({ action }) => action,
  on: ({ subject }) => (subject === null ? null : `${subject.kind} ${subject.id}`),
  change: (act) => changeText(act),
  from: ({ via, address }) => (address === null ? via : `${via}, ${address}`),
};

const changeText = (act: AuditRow): string =>
  changedValues(act)
    .map(({ name, before, after }) =>
      before === null ? `${name}: ${after}` : `${name}: ${before} → ${after ?? "none"}`,
    )
    .join("; ");

/** A kind and an id, or a kind alone. */
const subject: Field<{ kind: string; id: string | null }> = {
  read(typed) {
    const at = typed.indexOf(":");
    const [kind, id] = at < 0 ? [typed, null] : [typed.slice(0, at), typed.slice(at + 1)];
    return kind !== "" && id !== "" ? { kind, id } : undefined;
  },
  wanted: "a kind and an id, such as event:17, or a kind alone",
};
