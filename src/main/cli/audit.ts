import { type Command, InvalidArgumentError } from "commander";
import { type AuditQuery, type AuditRow, changedValues, readAudit } from "../../app/people/audit.ts";
import { migratedDatabase } from "../schema.ts";
import { parseInstant, wholeNumber } from "../../app/cli/arguments.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

interface ListOptions {
  by?: string;
  action?: string;
  subject?: NonNullable<AuditQuery["subject"]>;
  since?: Date;
  limit: number;
  json?: boolean;
}

export function registerAudit(program: Command, context: CliContext): void {
  program
    .command("audit")
    .description("what people did, on the dashboard and by commands that change something")
    .command("list")
    .description("list acts, the newest first")
    .option("--by <name>", "only of this person: an e-mail address, or the name given to a command")
    .option("--action <action>", "only this, such as event.replayed")
    .option("--subject <kind:id>", "only on this, such as event:17 or account", parseSubject)
    .option("--since <time>", "only from this time on, such as 2026-03-01T12:00:00Z", parseInstant)
    .option("--limit <n>", "how many", wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action((options: ListOptions) => list(context, options));
}

async function list(context: CliContext, options: ListOptions): Promise<void> {
  const { by: actor, action, subject, since, limit, json } = options;
  const acts = await context.withRuntime(
    "audit",
    async (runtime) => readAudit(await migratedDatabase(runtime), { actor, action, subject, since, limit }),
    { logLevel: "warn" },
  );
  if (json === true) {
    context.stdout.write(`${JSON.stringify(acts)}\n`);
    return;
  }
  if (acts.length === 0) {
    context.stdout.write("Nobody did any of this.\n");
    return;
  }
  context.stdout.write(tableText(columns, acts));
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

function parseSubject(text: string): NonNullable<AuditQuery["subject"]> {
  const at = text.indexOf(":");
  const [kind, id] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (kind !== "" && id !== "") return { kind, id };
  throw new InvalidArgumentError("Use a kind and an id, such as event:17, or a kind alone.");
}
