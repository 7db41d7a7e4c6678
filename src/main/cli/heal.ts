import { Argument, type Command } from "commander";
import Table from "cli-table3";
import type { Knex } from "knex";
import { findMisdated, listMisdated } from "../../mirror/misdated.ts";
import type { Decision } from "../../mirror/write/overwrite.ts";
import { type Actor, recordAct } from "../../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";
import { paragraph } from "../../platform/free-text.ts";
import { moneyText } from "../../platform/money.ts";
import { databaseNow } from "../../platform/postgres/database-clock.ts";
import { counted, withoutControls } from "../../platform/readable-text.ts";
import { mirrorResources } from "../../mirror/resources.ts";
import type { ObjectKey, Resource } from "../../mirror/snapshot.ts";
import { healMisdated } from "../../reconcile/heal-misdated.ts";
import {
  type HealProposal,
  applyHeal,
  assertOwnAccount,
  proposeHeal,
  readProposal,
} from "../../reconcile/heal-object.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { commandActor, parsePerson } from "./acting-person.ts";
import { freeText } from "./arguments.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { createProgress } from "./progress.ts";
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
      "overwrite one object of the mirror with what the service shows now, or all that are dated in the future; prints " +
        "what would change and asks first",
    )
    .addArgument(
      new Argument("<resource>", "what it is; misdated: all objects dated in the future").choices([
        ...mirrorResources.map(({ name }) => name),
        misdated,
      ]),
    )
    .argument("[id]", "its id at the service; none with misdated")
    .requiredOption("--from-service", "take what the service shows (required; the only source)")
    .requiredOption(
      "--reason <text>",
      "why: kept for ever, with who and when; name no customer",
      freeText(paragraph),
    )
    .option("--by <name>", "who decides (default: this system's user, if a person)", parsePerson)
    .option("--yes", "overwrite without asking")
    .action((what: Resource | typeof misdated, id: string | undefined, options: Options) =>
      context.withRuntime(
        "heal",
        (runtime) => {
          if ((what === misdated) !== (id === undefined)) {
            throw new UsageError(
              what === misdated
                ? "misdated stands for all objects that are dated in the future, and takes no id. Leave the id out."
                : `The id of the ${what} is missing. Give it after "${what}".`,
            );
          }
          return what === misdated
            ? healAllMisdated(context, runtime, options)
            : heal(context, runtime, { resource: what, id: id ?? "" }, options);
        },
        { logLevel: "warn" },
      ),
    );
}

const misdated = "misdated";

/** Checks who decides and why, before anything is read. */
function decisionOf(
  context: CliContext,
  { reason, by, yes }: Options,
): { actor: Actor; decision: Decision } {
  const actor = commandActor(context, by);
  if (yes !== true) assertCanAsk(context);
  return { actor, decision: { by: actor.name, reason } };
}

async function heal(
  context: CliContext,
  runtime: Runtime,
  object: HealProposal["object"],
  options: Options,
): Promise<void> {
  const { actor, decision } = decisionOf(context, options);
  await migratedDatabase(runtime);
  const deps = await reconcileDeps(runtime);
  const proposal = await proposeHeal(deps, object);
  context.stdout.write(proposalText(proposal));
  if (options.yes !== true) await confirm(context, "Overwrite it with what the service shows?");
  const within = (trx: Knex.Transaction): Promise<void> =>
    recordAct(trx, actor, {
      action: "object.healed",
      subject: { kind: object.resource, id: object.id },
      before: { sha256: proposal.seen.sha256 },
      after: { fields: proposal.differences.length },
    });
  if (!(await applyHeal(deps, proposal, decision, { within }))) {
    throw new UsageError(
      "The row has changed since it was read, so nothing was written. Run the same command again.",
    );
  }
  const name = `${object.resource} ${withoutControls(object.id)}`;
  context.stdout.write(
    `The ${name} is now as the service shows it; healed by ${withoutControls(actor.name)}.\n`,
  );
}

/** So many are shown with what would change, and so many by name. */
const [mostShown, mostNamed] = [3, 10];

async function healAllMisdated(
  context: CliContext,
  runtime: Runtime,
  options: Options,
): Promise<void> {
  const { actor, decision } = decisionOf(context, options);
  const db = await migratedDatabase(runtime);
  const deps = await reconcileDeps(runtime);
  const until = await databaseNow(db);
  const waiting = await findMisdated(db);
  if (waiting === null) {
    context.stdout.write("No object is dated in the future, so nothing is to be healed.\n");
    return;
  }
  const count = waiting.objects;
  const money = waiting.amounts.map((one) => moneyText(one.amountMinor, one.currency)).join(", ");
  context.stdout.write(
    `${counted(count, "object is", "objects are")} dated in the future` +
      `${money === "" ? "" : `, with ${money}`}. The first of them:\n\n`,
  );
  await assertOwnAccount(deps);
  for (const object of await listMisdated(db, { after: null, limit: mostShown, until })) {
    const read = await readProposal(deps, object);
    context.stdout.write(
      "why" in read
        ? `${nameOf(object)}\n${withoutControls(read.why)}\n\n`
        : `${proposalText(read)}\n`,
    );
  }
  if (options.yes !== true)
    await confirm(
      context,
      `Overwrite ${count === 1 ? "it" : `all ${count}`} with what the service shows?`,
    );
  const progress = createProgress(context.stderr, "healing", count);
  const { healed, givenUp, left } = await healMisdated(deps, decision, {
    until,
    withFirst: (trx) => recordAct(trx, actor, { action: "misdated.healed", after: { count } }),
    onProgress: (done) => progress.update(done),
  }).finally(() => progress.stop());
  context.stdout.write(
    `${counted(healed, "object is", "objects are")} now as the service shows ${healed === 1 ? "it" : "them"}; ` +
      `healed by ${withoutControls(actor.name)}.\n` +
      (givenUp.length === 0
        ? ""
        : `The service does not know ${named(givenUp.map(nameOf))}: nothing waits for ` +
          `${givenUp.length === 1 ? "it" : "them"} any more.\n`),
  );
  if (left.length > 0) {
    throw new UsageError(
      `${counted(left.length, "object was", "objects were")} left: ` +
        `${named(left.map(({ object, why }) => `${nameOf(object)} (${why})`))}. They still wait: tell the service's ` +
        "support of those that cannot be stored, and run the same command again.",
    );
  }
}

const nameOf = ({ resource, id }: ObjectKey): string => `${resource} ${withoutControls(id)}`;

const named = (texts: readonly string[]): string => {
  const more = texts.length - mostNamed;
  return texts.slice(0, mostNamed).join(", ") + (more > 0 ? ` and ${more} more` : "");
};

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
