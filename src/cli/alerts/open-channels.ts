import type { Channel } from "../../alerts/channels/channel.ts";
import { openChannels } from "../../alerts/channels/open-channels.ts";
import type { ChannelDeps } from "../../alerts/channels/open-channels.ts";
import { createDestinationGuard } from "../../alerts/destinations/destination-guard.ts";
import type { AlertSettings } from "../../alerts/settings.ts";
import type { Runtime } from "../../runtime.ts";
import { signatureScheme } from "../../service/signature/signature-scheme.ts";

/** All channels of this deployment. Contacts nothing; throws `ConfigurationError`. */
export const openAlertChannels = (
  runtime: Parameters<typeof alertChannelDeps>[0],
  settings: AlertSettings,
): ReadonlyMap<string, Channel> =>
  openChannels(settings.channels, alertChannelDeps(runtime, settings));

/** What channels are made of in this deployment. */
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
