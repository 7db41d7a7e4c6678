import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { deliveryErrors } from "../dispatch/own-errors.ts";
import { AttemptFailed } from "../dispatch/recipient.ts";
import { destinationNamed, recipientName } from "./destination-name.ts";
import type { Delivery, Destination } from "./destination.ts";
import { readDeliveries } from "./forward-work.ts";
import { eventItem } from "./webhooks.ts";
import { readTried } from "../../../core/inbox/read-by-number.ts";
import { UsageError, exitCodes } from "../../../platform/errors.ts";
import { linesWithoutControls, withoutControls } from "../../../platform/readable-text.ts";
import { forwardSettings, openOwnDestinations } from "./run-forwarding.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { parserOf, withDatabase } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { rowNumber } from "../../../app/people/fields.ts";
import {
  type RecipientKind,
  type RecipientWords,
  namesNear,
  readOneChange,
  registerRecipientCommands,
} from "../cli/recipients.ts";

export function registerForward(program: Command, context: CliContext): void {
  const forward = program.command("forward");

  registerRecipientCommands(forward, context, kindOf(context));

  forward
    .command("test")
    .description("send one delivery now, marked as a test, whatever was sent before")
    .argument("<name>", "the destination's name")
    .requiredOption("--number <seq>", "the number of the change, or of the event", parserOf(rowNumber))
    .action((name: string, { number }: { number: number }) => testOn(context, name, number));
}

const kindOf = (context: CliContext): RecipientKind => ({
  words,
  recipientOf: recipientName,
  nameOf: destinationNamed,
  defined: async () => ({
    names: Object.keys(forwardSettings(context.loaded())?.destinations ?? {}),
    problem: null,
  }),
});

const words: RecipientWords = {
  command: "forward",
  noun: "destination",
  item: "delivery",
  items: "deliveries",
  numberOption: "--number",
  place: "its place in the feed or the inbox",
  starter: "a worker",
  howToStop: "Take it out of FORWARD_SETTINGS_FILE and restart the workers",
  stillDefined: "FORWARD_SETTINGS_FILE still has it",
  undefinedState: "not in the settings",
  definedKey: "in_settings",
  none: "Nothing is forwarded. docs/forwarding.md says how to set it up.",
  ownErrors: deliveryErrors,
};

async function testOn(context: CliContext, name: string, seq: number): Promise<void> {
  const failure = await withDatabase(context, "forward", async ({ db, runtime }) => {
    const destination = openOne(runtime, name);
    try {
      const item = await readItem(db, destination, seq);
      const [delivery] = await readDeliveries(db, [{ ...destination, run: { seq, item } }]);
      if (delivery === undefined || delivery instanceof AttemptFailed) return delivery;
      await destination.deliver(asTest(delivery));
      return undefined;
    } catch (error) {
      if (error instanceof AttemptFailed) return error;
      throw error;
    } finally {
      await destination.close();
    }
  });
  if (failure === undefined) {
    context.stdout.write(`${name} has taken number ${seq}, as a test.\n`);
    return;
  }
  context.stderr.write(`tallyhook: ${name}: ${linesWithoutControls(failure.message)}\n`);
  process.exitCode = exitCodes.differs;
}

/** The content of the run with that number. Throws `UsageError` for an unknown number. */
async function readItem(db: Knex, { settings }: Destination, seq: number): Promise<unknown> {
  if (settings.send === "webhooks") {
    const [event] = (await readTried(db, { after: seq - 1, limit: 1 })).events;
    if (event?.seq !== seq) throw noEvent(seq);
    return eventItem(event);
  }
  return JSON.parse(JSON.stringify(await readOneChange(db, seq)));
}

const noEvent = (seq: number): UsageError =>
  new UsageError(
    `The inbox has no event ${seq} that a worker has tried. "${tallyhook("events list")}" has their numbers.`,
  );

/** Has another id than the real delivery, which would otherwise look like a repeat of the test. */
const asTest = ({ headers, ...delivery }: Delivery): Delivery => ({
  ...delivery,
  id: randomUUID(),
  headers: { ...headers, "tallyhook-test": "true" },
});

function openOne(runtime: Runtime, name: string): Destination {
  const settings = forwardSettings(runtime);
  const own = settings?.destinations[name];
  if (settings === null || own === undefined) {
    const names = Object.keys(settings?.destinations ?? {});
    throw new UsageError(
      `The settings have no destination "${withoutControls(name)}". ` +
        (names.length === 0 ? "FORWARD_SETTINGS_FILE names none." : namesNear(name, names)),
    );
  }
  const [opened] = openOwnDestinations(runtime, { ...settings, destinations: { [name]: own } });
  if (opened === undefined) throw new TypeError("a destination was not opened");
  return opened;
}
