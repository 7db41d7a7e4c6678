import type { Command } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { assertRemovable, removingConsumer } from "../consumer-acts.ts";
import { listConsumers } from "../consumers.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import { durationText, withoutControls } from "../../../platform/readable-text.ts";
import { optionalRooms } from "../../../main/optional-rooms.ts";
import { migratedDatabase } from "../../../main/schema.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

/** The commands about the readers of the feed, below `changes`. */
export function registerConsumers(changes: Command, context: CliContext): void {
  const consumers = changes.command("consumers").description("who reads the feed, and how far");
  consumers
    .command("list", { isDefault: true })
    .description("list the consumers, the one furthest behind first")
    .option("--json", "print JSON")
    // The option of the command above it is the same one.
    .action((_: unknown, command: Command) => list(context, isJson(command)));
  registerAct(consumers, context, {
    act: removingConsumer,
    name: "remove",
    description: "remove a consumer that nobody needs: the feed keeps nothing for it any more",
    takes: { consumer: { flags: "<name>", says: "its name" } },
    by: { who: "script", says: "who does it, for the record" },
    deps: async (runtime) => ({
      db: await migratedDatabase(runtime),
      isOwned: (name: string) => ownerCommand(name) !== null,
    }),
    async ask(deps, { consumer }) {
      await assertRemovable(deps, consumer);
      const lost = "Its position is lost, and the feed no longer keeps what it has not read.";
      return { question: `${lost} Remove ${withoutControls(consumer)}?`, decidedOn: null };
    },
    say: (_, { input }) => `The consumer ${withoutControls(input.consumer)} is removed.\n`,
    hints: {
      unknown: async ({ db }, { consumer }) => {
        const nearest = nearestName(
          consumer,
          (await listConsumers(db)).map(({ name }) => name),
        );
        return nearest === null ? `"${tallyhook("changes consumers")}" lists them.` : `Did you mean "${nearest}"?`;
      },
      hindered: async (_, { consumer }) => `"${tallyhook(ownerCommand(consumer) ?? "")}" removes both.`,
    },
  });
}

const isJson = (command: Command): boolean => command.optsWithGlobals<{ json?: boolean }>().json === true;

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
  const columns: Columns<(typeof consumers)[number]> = {
    name: ({ name }) => name,
    "read up to": ({ position }) => position,
    behind: ({ unreadSince: since }) => (since === null ? null : durationText(now.getTime() - since.getTime())),
    "last moved": ({ movedAt }) => movedAt,
  };
  context.stdout.write(tableText(columns, consumers));
}

/**
 * The command that removes a handler or a destination together with its place in the feed; null for a consumer of its
 * own.
 */
function ownerCommand(consumer: string): string | null {
  const { handlers, forward } = optionalRooms;
  const { handlerOf, destinationOf } = { ...handlers?.questions, ...forward?.questions };
  const recipient = handlerOf?.(consumer) ?? null;
  if (recipient === null) return null;
  const destination = destinationOf?.(recipient) ?? null;
  return destination === null ? `handlers remove ${recipient}` : `forward remove ${destination}`;
}
