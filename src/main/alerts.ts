import { type ChannelDeps, openChannels } from "../alerts/channels/channel-kinds.ts";
import type { Channel } from "../alerts/channels/channel.ts";
import { createDestinationGuard } from "../alerts/channels/destinations.ts";
import { beat, leave, schedulerBeat } from "../alerts/rules/watch-absence.ts";
import type { AlertSettings } from "../alerts/settings.ts";
import { sweepAlerts } from "../alerts/sweep.ts";
import { signatureScheme } from "../contract/signature/signature-scheme.ts";
import { runEvery } from "../platform/run-every.ts";
import { lastWholeRun } from "../reconcile/runs/runs.ts";
import type { ScheduledTask } from "../worker/start-worker.ts";
import { type Runtime, createAlertContext } from "./runtime.ts";

/** All channels of this deployment. Connects to nothing. Throws `ConfigurationError`. */
export const openAlertChannels = (
  runtime: Parameters<typeof alertChannelDeps>[0],
  settings: AlertSettings,
): ReadonlyMap<string, Channel> =>
  openChannels(settings.channels, alertChannelDeps(runtime, settings));

/** What this deployment's channels depend on. */
export function alertChannelDeps(
  { config, secrets, wallClock }: Pick<Runtime, "config" | "secrets" | "wallClock">,
  settings: AlertSettings,
): ChannelDeps {
  const { smtpUrl: url, alertSecrets } = secrets;
  const from = config.mailFrom;
  return {
    guard: createDestinationGuard(settings.destinations),
    clock: wallClock,
    secretOf: (variable) => alertSecrets[variable] ?? null,
    smtp: url === null || from === null ? null : { url, from },
    scheme: signatureScheme(config.signature.scheme),
    writeLine: (line) => void process.stdout.write(line),
  };
}

const sweepEveryMs = 30_000;
const beatEveryMs = 60_000;

/**
 * Sweeps until the runtime ends, for alerts that no event causes, such as absences. Each worker has its own timer, as
 * for the relay, because a scheduler that has stopped is one of the things a sweep detects.
 */
export async function runAlertWatch(runtime: Runtime): Promise<void> {
  const { log } = runtime;
  const db = await runtime.db();
  const alertContext = await createAlertContext(runtime);
  const name = `worker:${process.pid}:${crypto.randomUUID()}`;
  const watch = runEvery({ log, name: "alerts" }, sweepEveryMs, async () => {
    await beat(db, name);
    return sweepAlerts({ db, log, lastWholeRun }, alertContext);
  });
  runtime.onClose(async () => {
    await watch.close();
    await leave(db, name);
  });
}

/** Records the heartbeat by which the sweep knows that the scheduler runs. */
export async function schedulerBeatTask(
  runtime: Runtime,
): Promise<Record<"scheduler-beat", ScheduledTask>> {
  const db = await runtime.db();
  return {
    "scheduler-beat": {
      schedule: { everyMs: beatEveryMs },
      run: () => beat(db, schedulerBeat),
    },
  };
}
