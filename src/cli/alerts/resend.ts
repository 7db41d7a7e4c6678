import { resendFailed } from "../../alerts/resend.ts";
import { unknownChannel } from "../../alerts/settings.ts";
import { UsageError } from "../../platform/errors.ts";
import { migratedDatabase } from "../../runtime.ts";
import type { CliContext } from "../context.ts";
import { alertId } from "./show.ts";

export interface ResendOptions {
  channel?: string;
  hours: number;
  json?: boolean;
}

/** Has the workers send again what was given up: of one alert, or of one channel. Sends nothing itself. */
export async function resend(
  context: CliContext,
  given: string | undefined,
  { channel, hours, json }: ResendOptions,
): Promise<void> {
  if (given === undefined && channel === undefined) {
    throw new UsageError("Name an alert, or a channel with --channel.");
  }
  const messages = await context.withRuntime(
    "alerts",
    async (runtime) => {
      const { channels } = await runtime.alertSettings();
      if (channel !== undefined && !Object.hasOwn(channels, channel)) {
        throw new UsageError(unknownChannel(channel, Object.keys(channels)));
      }
      const db = await migratedDatabase(runtime);
      return resendFailed(db, {
        withinHours: hours,
        ...(given === undefined ? {} : { alertId: await alertId(runtime, given) }),
        ...(channel === undefined ? {} : { channel }),
      });
    },
    { logLevel: "warn" },
  );
  if (json === true) context.stdout.write(`${JSON.stringify({ messages })}\n`);
  else context.stdout.write(`${saidOf(messages, hours)}\n`);
}

function saidOf(messages: Readonly<Record<string, number>>, hours: number): string {
  const parts = Object.entries(messages).map(([channel, count]) => `${channel} ${count}`);
  return parts.length === 0
    ? `Nothing of the last ${hours} hours was given up.`
    : `Workers send again: ${parts.join(", ")}. What is over meanwhile is left out.`;
}
