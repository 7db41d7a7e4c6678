import { randomUUID } from "node:crypto";
import { DeliveryFailed } from "../../alerts/channels/channel.ts";
import type { Channel } from "../../alerts/channels/channel.ts";
import { tryOpen } from "../../alerts/channels/open-channels.ts";
import { sampleMessages } from "../../alerts/sample-messages.ts";
import { unknownChannel } from "../../alerts/settings.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../platform/errors.ts";
import { startDeadline } from "../../platform/http/deadline.ts";
import type { CliContext } from "../context.ts";
import { alertDesk } from "./alert-desk.ts";
import { alertChannelDeps } from "./open-channels.ts";

const sendTimeoutMs = 15_000;

export interface TestOptions {
  all?: boolean;
}

/**
 * Sends messages of the rules about made-up facts to a channel: one of each severity, or of every rule's every stage.
 * Says what the channel answered. Needs no database.
 */
export async function testChannel(
  context: CliContext,
  name: string,
  { all }: TestOptions,
): Promise<void> {
  await context.withRuntime(
    "alerts",
    async (runtime) => {
      const settings = await runtime.alertSettings();
      const chosen = Object.hasOwn(settings.channels, name) ? settings.channels[name] : undefined;
      if (chosen === undefined) {
        throw new UsageError(unknownChannel(name, Object.keys(settings.channels)));
      }
      const { channel, problem } = tryOpen(chosen, alertChannelDeps(runtime, settings));
      if (problem !== undefined) throw new ConfigurationError(`Channel "${name}": ${problem}.`);
      runtime.onClose(() => channel.close());
      const samples = sampleMessages(await alertDesk(runtime), {
        channel: name,
        run: randomUUID(),
        at: runtime.wallClock.now(),
        all: all === true,
        endsAll: channel.kind === "pagerduty",
      });
      for (const { what, message } of samples) {
        const answer = await sendSample(name, channel, message);
        const line = `${message.severity.padEnd(9)} ${what.padEnd(38)} ${answer}`;
        context.stdout.write(`${line}\n`);
      }
      context.stdout.write(`Channel "${name}" took ${samples.length} messages, all marked TEST.\n`);
    },
    { logLevel: "silent" },
  );
}

async function sendSample(
  name: string,
  channel: Channel,
  message: Parameters<Channel["send"]>[0],
): Promise<string> {
  const deadline = startDeadline(sendTimeoutMs, []);
  try {
    return await channel.send(message, { signal: deadline.signal });
  } catch (error) {
    if (!(error instanceof DeliveryFailed)) throw error;
    throw new UnreachableError(`Channel "${name}" did not take the message: ${error.message}.`, {
      cause: error,
    });
  } finally {
    deadline.dispose();
  }
}
