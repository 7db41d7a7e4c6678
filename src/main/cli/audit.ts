import type { Command } from "commander";
import { type AuditQuery, type AuditRow, changedValues, readAudit } from "../../app/people/audit.ts";
import { type Field, instant, optional, reference } from "../../app/people/fields.ts";
import { howMany, registerReading } from "../../app/cli/command.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

export function registerAudit(program: Command, context: CliContext): void {
  const list = program
    .command("audit")
    .description("what people did, on the dashboard and by commands that change something")
    .command("list")
    .description("list acts, the newest first");
  registerReading(list, context, {
    takes: {
      by: {
        is: optional(reference),
        flags: "--by <name>",
        says: "only of this person: an e-mail address, or the name given to a command",
      },
      action: { is: optional(reference), flags: "--action <action>", says: "only this, such as event.replayed" },
      subject: {
        is: optional(subject),
        flags: "--subject <kind:id>",
        says: "only on this, such as event:17 or account",
      },
      since: {
        is: optional(instant),
        flags: "--since <time>",
        says: "only from this time on, such as 2026-03-01T12:00:00Z",
      },
      limit: howMany(50),
    },
    read: ({ db }, { by, action, subject: on, since, limit }) =>
      readAudit(db, {
        actor: by ?? undefined,
        action: action ?? undefined,
        subject: on ?? undefined,
        since: since ?? undefined,
        limit,
      }),
    text: (acts) => (acts.length === 0 ? "No act matches.\n" : tableText(columns, acts)),
    json: (acts) => acts,
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
const subject: Field<NonNullable<AuditQuery["subject"]>> = {
  read(typed) {
    const at = typed.indexOf(":");
    const [kind, id] = at < 0 ? [typed, undefined] : [typed.slice(0, at), typed.slice(at + 1)];
    return kind !== "" && id !== "" ? { kind, id } : undefined;
  },
  wanted: "a kind and an id, such as event:17, or a kind alone",
};
