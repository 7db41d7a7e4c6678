import { Argument, type Command } from "commander";
import Table from "cli-table3";
import type { Knex } from "knex";
import { recordAct } from "../../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { mirrorResources } from "../../mirror/resources.ts";
import type { Resource } from "../../mirror/snapshot.ts";
import { type HealProposal, applyHeal, proposeHeal } from "../../reconcile/heal-object.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { commandActor, parsePerson } from "./acting-person.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { reconcileDeps } from "../reconciliation.ts";

interface Options {
  reason: string;
  by?: string;
  yes?: boolean;
}

export function registerHeal(program: Command, context: CliContext): void {
  program
    .command("heal")
    .description(
      "overwrite one object of the mirror with what the service shows now; prints what would change and asks first",
    )
    .addArgument(
      new Argument("<resource>", "what it is").choices(mirrorResources.map(({ name }) => name)),
    )
    .argument("<id>", "its id at the service")
    .requiredOption("--from-service", "take what the service shows (required; the only source)")
    .requiredOption("--reason <text>", "why: kept for ever, with who and when; name no customer")
    .option("--by <name>", "who decides (default: this system's user, if a person)", parsePerson)
    .option("--yes", "overwrite without asking")
    .action((resource: Resource, id: string, options: Options) =>
      context.withRuntime("heal", (runtime) => heal(context, runtime, { resource, id }, options), {
        logLevel: "warn",
      }),
    );
}

async function heal(
  context: CliContext,
  runtime: Runtime,
  object: HealProposal["object"],
  { reason, by: given, yes }: Options,
): Promise<void> {
  const actor = commandActor(context, given);
  const by = actor.name;
  if (reason.trim() === "")
    throw new UsageError("--reason is empty. Say why the object has to be overwritten.");
  if (yes !== true) assertCanAsk(context);
  await migratedDatabase(runtime);
  const deps = await reconcileDeps(runtime);
  const proposal = await proposeHeal(deps, object);
  context.stdout.write(proposalText(proposal));
  if (yes !== true) await confirm(context, "Overwrite it with what the service shows?");
  const within = (trx: Knex.Transaction): Promise<void> =>
    recordAct(trx, actor, {
      action: "object.healed",
      subject: { kind: object.resource, id: object.id },
      before: { sha256: proposal.seen.sha256 },
      after: { fields: proposal.differences.length },
    });
  if (!(await applyHeal(deps, proposal, { by, reason }, { within }))) {
    throw new UsageError(
      "The row has changed since it was read, so nothing was written. Run the same command again.",
    );
  }
  const name = `${object.resource} ${withoutControls(object.id)}`;
  context.stdout.write(
    `The ${name} is now as the service shows it; healed by ${withoutControls(by)}.\n`,
  );
}

function proposalText({ object, differences, isRedated, seen }: HealProposal): string {
  const table = new Table({
    head: ["field", "mirror", "service"],
    style: { head: [], border: [] },
  });
  for (const { field, mirror, service } of differences) {
    table.push([withoutControls(field), cell(mirror), cell(service)]);
  }
  const lines = [
    `${object.resource} ${withoutControls(object.id)}`,
    differences.length > 0 ? table.toString() : "Every field is as the service shows it.",
    ...(seen.sha256 === null ? ["The mirror does not have it yet."] : []),
    ...(seen.futureVersions.length > 0
      ? [
          `Versions dated in the future, which keep newer states out: ${seen.futureVersions.join(", ")}.`,
        ]
      : []),
    ...(isRedated
      ? [
          "The service itself shows a time in the future. The time of its answer is written instead.",
        ]
      : []),
  ];
  return `${lines.join("\n")}\n`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return withoutControls(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 60);
}
