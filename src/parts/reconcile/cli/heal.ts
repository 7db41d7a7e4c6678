import type { Command } from "commander";
import { type MisdatedObjects, findMisdated, listMisdated } from "../../../core/mirror/misdated.ts";
import type { ObjectKey } from "../../../core/mirror/snapshot.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { moneyText } from "../../../platform/money.ts";
import { databaseNow } from "../../../platform/postgres/database-clock.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import { healing, healingMisdated } from "../acts.ts";
import { slicedResources } from "../coverage/slice.ts";
import type { MisdatedHeals } from "../heal-misdated.ts";
import {
  type HealProposal,
  type ProposalDeps,
  assertOwnAccount,
  proposeHeal,
  readProposal,
  versionToHeal,
} from "../heal-object.ts";
import { reconcileDeps } from "../reconciliation.ts";
import { withDatabase } from "../../../app/cli/command.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { commandActor } from "../../../app/cli/acting-person.ts";
import { assertCanAsk, confirm } from "../../../app/cli/confirm.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { createProgress } from "../../../app/cli/progress.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

export function registerHeal(program: Command, context: CliContext): void {
  const heal = registerAct(program, context, {
    act: healing,
    name: "heal",
    takes: {
      resource: { flags: "<resource>", says: `what it is: ${slicedResources.join(", ")}` },
      id: { flags: "<id>", says: "its id at the service" },
      reason: {
        flags: "--reason <text>",
        says: "the reason, kept permanently with the person and the time; name no customer",
      },
    },
    by: { who: "person", says: "name of the person who decides (default: this system's user, if a person)" },
    async deps({ runtime }) {
      const deps = await reconcileDeps(runtime);
      return { ...deps, propose: (object: ObjectKey) => proposeHeal(deps, object) };
    },
    async ask({ propose }, { resource, id }) {
      const proposal = await propose({ resource, id });
      context.stdout.write(proposalText(proposal));
      const question = "Overwrite it with what the service shows?";
      return { question, decidedOn: versionToHeal(proposal) };
    },
    say: (_, { input: { resource, id }, actor }) =>
      `The ${resource} ${withoutControls(id)} is now as the service shows it; healed by ` +
      `${withoutControls(actor.name)}.\n`,
    hints: {
      unknown:
        `Check the id: "${tallyhook("findings list")}" shows what differs, and "${tallyhook("reconcile")}" finds ` +
        "what the service no longer has.",
      outdated: "Run the same command again.",
    },
  }).requiredOption("--from-service", "write what the service shows (required; the only source)");

  heal
    .command("misdated")
    .description("heal all objects that are dated in the future, with the same options")
    // Its options are those of the command above it.
    .action((_: unknown, command: Command) => healAllMisdated(context, command.optsWithGlobals<Options>()));
}

interface Options {
  reason: string;
  by?: string;
  yes?: boolean;
}

/** So many are shown with what would change, and so many by name. */
const [mostShown, mostNamed] = [3, 10];

async function healAllMisdated(context: CliContext, { reason, by, yes = false }: Options): Promise<void> {
  const actor = commandActor(context, by);
  if (!yes) assertCanAsk(context);
  await withDatabase(context, "heal", async ({ db, runtime }) => {
    const until = await databaseNow(db);
    const waiting = await findMisdated(db);
    if (waiting === null) {
      context.stdout.write("No object is dated in the future, so nothing is to be healed.\n");
      return;
    }
    const deps = await reconcileDeps(runtime);
    await showMisdated(context, deps, waiting, until);
    const count = waiting.objects;
    if (!yes) {
      const which = count === 1 ? "it" : `all ${count}`;
      await confirm(context, `Overwrite ${which} with what the service shows?`);
    }
    const progress = createProgress(context.stderr, "healing", count);
    const onProgress = (done: number) => progress.update(done);
    const call = { actor, input: { reason }, decidedOn: until.toISOString() };
    const heals = await healingMisdated.run({ ...deps, onProgress }, call).finally(() => progress.stop());
    report(context, heals, actor.name);
  });
}

async function showMisdated(
  { stdout }: Pick<CliContext, "stdout">,
  deps: ProposalDeps,
  { objects, amounts }: MisdatedObjects,
  until: Date,
): Promise<void> {
  const money = amounts.map((one) => moneyText(one.amountMinor, one.currency)).join(", ");
  stdout.write(
    `${counted(objects, "object is", "objects are")} dated in the future` +
      `${money === "" ? "" : `, with ${money}`}. The first of them:\n\n`,
  );
  await assertOwnAccount(deps);
  for (const object of await listMisdated(deps.db, { after: null, limit: mostShown, until })) {
    const read = await readProposal(deps, object);
    stdout.write("why" in read ? `${nameOf(object)}\n${withoutControls(read.why)}\n\n` : `${proposalText(read)}\n`);
  }
}

/** Throws `UsageError` where objects are left. */
function report({ stdout }: Pick<CliContext, "stdout">, { healed, givenUp, left }: MisdatedHeals, by: string): void {
  stdout.write(
    `${counted(healed, "object is", "objects are")} now as the service shows ${healed === 1 ? "it" : "them"}; ` +
      `healed by ${withoutControls(by)}.\n` +
      (givenUp.length === 0
        ? ""
        : `The service does not know ${named(givenUp.map(nameOf))}: nothing waits for ` +
          `${givenUp.length === 1 ? "it" : "them"} any more.\n`),
  );
  if (left.length === 0) return;
  throw new UsageError(
    `${counted(left.length, "object was", "objects were")} left: ` +
      `${named(left.map(({ object, why }) => `${nameOf(object)} (${why})`))}. They still wait: tell the service's ` +
      "support of those that cannot be stored, and run the same command again.",
  );
}

const nameOf = ({ resource, id }: ObjectKey): string => `${resource} ${withoutControls(id)}`;

const named = (texts: readonly string[]): string => {
  const more = texts.length - mostNamed;
  return texts.slice(0, mostNamed).join(", ") + (more > 0 ? ` and ${more} more` : "");
};

function proposalText({ object, differences, isRedated, seen }: HealProposal): string {
  const lines = [
    `${object.resource} ${withoutControls(object.id)}`,
    differences.length > 0 ? tableText(columns, differences).trimEnd() : "Every field is as the service shows it.",
    ...(seen.sha256 === null ? ["The mirror does not have it yet."] : []),
    ...(seen.futureVersions.length > 0
      ? [`Versions dated in the future, which keep newer states out: ${seen.futureVersions.join(", ")}.`]
      : []),
    ...(isRedated ? ["The service itself shows a time in the future. The time of its answer is written instead."] : []),
  ];
  return `${lines.join("\n")}\n`;
}

const columns: Columns<HealProposal["differences"][number]> = {
  field: ({ field }) => field,
  mirror: ({ mirror }) => cell(mirror),
  service: ({ service }) => cell(service),
};

function cell(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 60);
}
