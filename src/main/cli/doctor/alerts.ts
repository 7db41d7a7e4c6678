import { type ChannelDeps, tryOpen } from "../../../alerts/channels/channel-kinds.ts";
import { DestinationRefused } from "../../../alerts/channels/destinations.ts";
import { outboxTrouble } from "../../../alerts/outbox/outbox.ts";
import type { AlertSettings, ChannelSettings } from "../../../alerts/settings.ts";
import { alertChannelDeps } from "../../alerts.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Runtime } from "../../runtime.ts";
import { type Finding, check, failed, ok, skipped, warning } from "./finding.ts";

/** Checks the settings, each channel and the undeliverable messages. Resolves host names and sends nothing. */
export async function examineAlerts(runtime: Runtime, database: Finding): Promise<Finding[]> {
  const readable = await check("alerts", async () =>
    describe(runtime, await runtime.alertSettings()),
  );
  if (readable.status === "failed") return [readable];
  const settings = await runtime.alertSettings();
  const deps = alertChannelDeps(runtime, settings);
  const each = await Promise.all(
    Object.entries(settings.channels).map(([name, channel]) =>
      check(`alerts ${name}`, () => checkChannel(`alerts ${name}`, channel, deps)),
    ),
  );
  return [readable, ...each, await check("alerts unsent", () => checkUnsent(runtime, database))];
}

function describe({ config, secrets }: Runtime, settings: AlertSettings): Finding {
  const on = Object.values(settings.rules).filter(({ enabled }) => enabled).length;
  const from = config.alerts.settingsFile ?? "defaults";
  const used = JSON.stringify(settings.channels);
  const unused = Object.getOwnPropertyNames(secrets.alertSecrets).filter(
    (name) => name.startsWith("ALERT_") && !used.includes(`"${name}"`),
  );
  const detail = `${counted(on, "rule is", "rules are")} on (settings: ${from})`;
  if (unused.length === 0) return ok("alerts", detail);
  return warning(
    "alerts",
    `no channel uses ${unused.join(", ")}`,
    "name it in the file of ALERT_SETTINGS_FILE, or remove it from the environment",
  );
}

async function checkChannel(
  check: string,
  settings: ChannelSettings,
  deps: ChannelDeps,
): Promise<Finding> {
  const { channel, problem } = tryOpen(settings, deps);
  if (problem !== undefined) return failed(check, problem, null);
  const { host, kind } = channel;
  await channel.close();
  if (host === null) return ok(check, kind);
  try {
    const addresses = await deps.guard.resolve(host);
    if (addresses.length > 0) return ok(check, `${kind} at ${host}`);
  } catch (error) {
    if (error instanceof DestinationRefused) return failed(check, error.message, null);
  }
  return failed(check, `${host} has no address`, "check the name, and this machine's DNS");
}

async function checkUnsent(runtime: Runtime, database: Finding): Promise<Finding> {
  if (database.status === "failed") {
    return skipped("alerts unsent", "the database is not ready");
  }
  const { failed: givenUp, late } = await outboxTrouble(await runtime.db());
  const detail = `messages given up in the last day: ${givenUp}; late by more than 5 minutes: ${late}`;
  return givenUp + late === 0
    ? ok("alerts unsent", detail)
    : warning(
        "alerts unsent",
        detail,
        'try "npx tallyhook alerts test CHANNEL", then "npx tallyhook alerts resend --channel CHANNEL"',
      );
}
