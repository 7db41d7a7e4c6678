import type { AlertDesk } from "../../alerts/desk.ts";
import type { Runtime } from "../../runtime.ts";

/** What raising alerts needs of a runtime. Throws `ConfigurationError` for wrong settings. */
export async function alertDesk(
  runtime: Pick<Runtime, "alertSettings" | "config" | "wallClock" | "serviceClock">,
): Promise<AlertDesk> {
  return {
    settings: await runtime.alertSettings(),
    timeZone: runtime.config.timeZone,
    networkRegion: runtime.config.networkRegion,
    clock: runtime.wallClock,
    serviceClock: runtime.serviceClock,
  };
}
