import Table from "cli-table3";
import type { Command } from "commander";
import type { Knex } from "knex";
import { listConsumers, readConsumer, removeConsumer } from "../../feed/consumers.ts";
import { recordAct } from "../../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { durationText, withoutControls } from "../../platform/readable-text.ts";
import { optionalRooms } from "../optional-rooms.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, scriptActor } from "./acting-person.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";

/** The commands about the readers of the feed, below `changes`. */
export function registerConsumers(changes: Command, context: CliContext): void {
  const consumers = changes.command("consumers").description("who reads the feed, and how far");
  consumers
    .command("list", { isDefault: true })
    .description("list the consumers, the one furthest behind first")
    .option("--json", "print JSON")
    // The option of the command above it is the same one.
    .action((_: unknown, command: Command) => list(context, isJson(command)));
  consumers
    .command("remove")
    .description("remove a consumer that nobody needs: the feed keeps nothing for it any more")
    .argument("<name>", "its name")
    .option("--yes", "remove it without asking")
    .option("--by <name>", "who does it, for the record", parsePerson)
    .action((name: string, options: RemoveOptions) => remove(context, name, options));
}

const isJson = (command: Command): boolean =>
  command.optsWithGlobals<{ json?: boolean }>().json === true;

const withDatabase = <T>(context: CliContext, run: (db: Knex) => Promise<T>): Promise<T> =>
  context.withRuntime("changes", async (runtime) => run(await migratedDatabase(runtime)), {
    logLevel: "warn",
  });

async function list(context: CliContext, json: boolean): Promise<void> {
  const { consumers, now } = await context.withRuntime(
    "changes",
    async (runtime) => ({
      consumers: await listConsumers(await migratedDatabase(runtime)),
      now: runtime.wallClock.now(),
    }),
    { logLevel: "warn" },
  );
  if (json) {
    const rows = consumers.map(({ name, position, movedAt, createdAt, unreadSince }) => ({
      name,
      position,
      unread_since: unreadSince,
      moved_at: movedAt,
      created_at: createdAt,
    }));
    context.stdout.write(`${JSON.stringify({ consumers: rows })}\n`);
    return;
  }
  if (consumers.length === 0) {
    context.stdout.write("Nobody reads the feed by a name.\n");
    return;
  }
  const table = new Table({
    head: ["name", "read up to", "behind", "last moved"],
    style: { head: [], border: [] },
  });
  for (const { name, position, movedAt, unreadSince } of consumers) {
    const behind = unreadSince === null ? "-" : durationText(now.getTime() - unreadSince.getTime());
    table.push([withoutControls(name), String(position), behind, movedAt.toISOString()]);
  }
  context.stdout.write(`${table.toString()}\n`);
}

interface RemoveOptions {
  yes?: boolean;
  by?: string;
}

async function remove(
  context: CliContext,
  name: string,
  { yes = false, by }: RemoveOptions,
): Promise<void> {
  const actor = scriptActor(context, by);
  const shown = withoutControls(name);
  assertOwnPlace(name);
  if (!yes) assertCanAsk(context);
  await withDatabase(context, async (db) => {
    if ((await readConsumer(db, name)) === null) {
      const names = (await listConsumers(db)).map((consumer) => consumer.name);
      throw new UsageError(`No consumer is called "${shown}".${hint(name, names)}`);
    }
    if (!yes) {
      await confirm(
        context,
        `Its position is lost, and the feed no longer keeps what it has not read. Remove ${shown}?`,
      );
    }
    await inTransaction(db, async (trx) => {
      const position = await removeConsumer(trx, name);
      if (position === null) return;
      await recordAct(trx, actor, {
        action: "consumer.removed",
        subject: { kind: "consumer", id: name },
        before: { position },
      });
    });
  });
  context.stdout.write(`The consumer ${shown} is removed.\n`);
}

/** Handlers and destinations have places in the feed, which go with them. Throws `UsageError`. */
function assertOwnPlace(name: string): void {
  const { handlers, forward } = optionalRooms;
  const { handlerOf, destinationOf } = { ...handlers?.questions, ...forward?.questions };
  const recipient = handlerOf?.(name) ?? null;
  if (recipient === null) return;
  const destination = destinationOf?.(recipient) ?? null;
  const [noun, command] =
    destination === null
      ? ["handler", `handlers remove ${recipient}`]
      : ["destination", `forward remove ${destination}`];
  throw new UsageError(
    `"${withoutControls(name)}" is the place of a ${noun}. "node src/bin/tallyhook.js ${withoutControls(command)}" ` +
      `removes both.`,
  );
}

function hint(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === null ? "" : ` Did you mean "${withoutControls(nearest)}"?`;
}
