import { Argument, type Command } from "commander";
import Table from "cli-table3";
import { UsageError } from "../../platform/errors.ts";
import { visible } from "../../platform/readable-text.ts";
import { mirrorResources } from "../../mirror/resources.ts";
import type { Resource } from "../../mirror/snapshot.ts";
import { type HealProposal, applyHeal, proposeHeal } from "../../reconcile/heal-object.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, personAtWork } from "./acting-person.ts";
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
      "write one object as the service shows it now, whatever the mirror holds; shows what would change and asks first",
    )
    .addArgument(
      new Argument("<resource>", "what it is").choices(mirrorResources.map(({ name }) => name)),
    )
    .argument("<id>", "its id at the service")
    .requiredOption("--from-service", "read it from the service: the only source there is")
    .requiredOption("--reason <text>", "why: kept for ever, with who and when; name no customer")
    .option("--by <name>", "who decides (default: this system's user, if a person)", parsePerson)
    .option("--yes", "do not ask")
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
  { reason, by = personAtWork(context.user()), yes }: Options,
): Promise<void> {
  if (reason.trim() === "")
    throw new UsageError("--reason is empty. Say why it has to be written.");
  if (yes !== true) assertCanAsk(context);
  await migratedDatabase(runtime);
  const deps = await reconcileDeps(runtime);
  const proposal = await proposeHeal(deps, object);
  context.stdout.write(proposalText(proposal));
  if (yes !== true) await confirm(context, "Write it as the service shows it?");
  if (!(await applyHeal(deps, proposal, { by, reason }))) {
    throw new UsageError("The row has changed since it was read. Run the same command again.");
  }
  const name = `${object.resource} ${visible(object.id)}`;
  context.stdout.write(`The ${name} is as the service shows it, by ${visible(by)}.\n`);
}

function proposalText({ object, differences, isRedated, seen }: HealProposal): string {
  const table = new Table({
    head: ["field", "mirror", "service"],
    style: { head: [], border: [] },
  });
  for (const { field, mirror, service } of differences) {
    table.push([visible(field), cell(mirror), cell(service)]);
  }
  const lines = [
    `${object.resource} ${visible(object.id)}`,
    differences.length > 0 ? table.toString() : "Every field is as the service shows it.",
    ...(seen.sha256 === null ? ["The mirror does not have it yet."] : []),
    ...(seen.futureVersions.length > 0
      ? [`Versions of the future, which let nothing newer in: ${seen.futureVersions.join(", ")}.`]
      : []),
    ...(isRedated
      ? [
          "The service itself shows a time that is not yet: the time of its answer is written in its place.",
        ]
      : []),
  ];
  return `${lines.join("\n")}\n`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return visible(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 60);
}
