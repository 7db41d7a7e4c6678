import { type ForwardSettings, guardFor } from "./settings.ts";
import { counted } from "../../../platform/readable-text.ts";
import { forwardSettings, openOwnDestinations } from "./run-forwarding.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { checkHost } from "../../../app/check-host.ts";
import { type CheckResult, check, ok, warning } from "../../../app/check-result.ts";

/** Checks settings, secrets and each destination's host; does nothing where forwarding is off. Sends nothing. */
export async function checkForwarding(runtime: Runtime): Promise<CheckResult[]> {
  if (runtime.config.forward.settingsFile === null) return [];
  let settings: ForwardSettings | null = null;
  const readable = await check("forward", async () => {
    settings = forwardSettings(runtime);
    return describe(runtime, settings);
  });
  if (settings === null || readable.status === "failed") return [readable];
  return [readable, ...(await checkDestinations(runtime, settings))];
}

function describe(runtime: Runtime, settings: ForwardSettings | null): CheckResult {
  const destinations = settings?.destinations ?? {};
  const used = new Set(Object.values(destinations).map(({ secretFrom }) => secretFrom));
  const unused = Object.getOwnPropertyNames(runtime.secrets.forwardSecrets).filter(
    (name) => name.startsWith("FORWARD_") && !used.has(name),
  );
  const detail = counted(Object.keys(destinations).length, "destination");
  return unused.length === 0
    ? ok("forward", `${detail} (settings: ${runtime.config.forward.settingsFile})`)
    : warning(
        "forward",
        `no destination uses ${unused.join(", ")}`,
        "name it in the file of FORWARD_SETTINGS_FILE, or remove it from the environment",
      );
}

async function checkDestinations(runtime: Runtime, settings: ForwardSettings): Promise<CheckResult[]> {
  const guard = guardFor(settings);
  return Promise.all(
    Object.entries(settings.destinations).map(([name, each]) => {
      const label = `forward ${name}`;
      return check(label, async () => {
        const only = { ...settings, destinations: { [name]: each } };
        const [opened] = openOwnDestinations(runtime, only);
        if (opened === undefined) throw new TypeError("a destination was not opened");
        await opened.close();
        const { host } = opened;
        return checkHost(label, guard, host, `${each.send} to ${host}`);
      });
    }),
  );
}
