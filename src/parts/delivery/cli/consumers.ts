import type { Command } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { assertRemovable, removingConsumer } from "../consumer-acts.ts";
import { listConsumers } from "../consumers.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import { durationText, withoutControls } from "../../../platform/readable-text.ts";
import { registerReading } from "../../../app/cli/command.ts";
import type { Answers, ConsumerLag } from "../../../app/answers.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

/** The commands about the readers of the feed, below `changes`. */
export function registerConsumers(changes: Command, context: CliContext): void {
  const consumers = changes.command("consumers").description("the consumers of the feed and their positions");
  const list = consumers
    .command("list", { isDefault: true })
    .description("list the consumers, the one furthest behind first");
  registerReading(list, context, {
    read: async ({ db, runtime }) => ({ consumers: await listConsumers(db), now: runtime.wallClock.now() }),
    text: ({ consumers: rows, now }) =>
      rows.length === 0 ? "The feed has no named consumer.\n" : tableText(columnsAt(now), rows),
    json: ({ consumers: rows }) => ({
      consumers: rows.map(({ name, position, movedAt, createdAt, unreadSince }) => ({
        name,
        position,
        unread_since: unreadSince,
        moved_at: movedAt,
        created_at: createdAt,
      })),
    }),
  });
  registerAct(consumers, context, {
    act: removingConsumer,
    name: "remove",
    description: "remove a consumer that is no longer needed: the feed then keeps nothing for it",
    takes: { consumer: { flags: "<name>", says: "its name" } },
    by: { who: "script", says: "name of the person who does this, for the audit" },
    deps: ({ db, runtime }) => ({
      db,
      removedBy: (name: string) => ownerCommand(runtime.ask, name),
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
      hindered: async ({ removedBy }, { consumer }) => `"${tallyhook(removedBy(consumer) ?? "")}" removes both.`,
    },
  });
}

const columnsAt = (now: Date): Columns<ConsumerLag> => ({
  name: ({ name }) => name,
  "read up to": ({ position }) => position,
  behind: ({ unreadSince: since }) => (since === null ? null : durationText(now.getTime() - since.getTime())),
  "last moved": ({ movedAt }) => movedAt,
});

/**
 * The command that removes a handler or a destination together with its place in the feed; null for a consumer of its
 * own.
 */
function ownerCommand({ handlerOf, destinationOf }: Answers, consumer: string): string | null {
  const recipient = handlerOf?.(consumer) ?? null;
  if (recipient === null) return null;
  const destination = destinationOf?.(recipient) ?? null;
  return destination === null ? `handlers remove ${recipient}` : `forward remove ${destination}`;
}
