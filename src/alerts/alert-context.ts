import type { Clock } from "../platform/clock.ts";
import { dayText, localTimeIn, timeText } from "../platform/local-time.ts";
import type { Wording } from "./rules/wording.ts";
import type { AlertSettings } from "./settings.ts";

/** What alerts need of the deployment, wherever they are raised. */
export interface AlertContext {
  settings: AlertSettings;
  /** IANA: times in messages, quiet hours and digests where the settings name no zone of their own. */
  timeZone: string;
  /** Whose thresholds of the card networks count: `CARD_NETWORK_REGION`. */
  networkRegion: string;
  /** This machine's clock: quiet hours, digests. */
  clock: Clock;
  /** What "now" means at the service. */
  serviceClock: Clock;
}

/** By what a fact was learned. */
export type FoundBy = "event" | "read" | "reconciliation" | "import" | "sweep";

/** … or by whom an alert was changed. */
export type ChangedBy = FoundBy | "person";

export const zoneOf = ({ settings, timeZone }: AlertContext): string =>
  settings.timeZone ?? timeZone;

/** What rules write with: times are those of the desk's zone, `2026-03-04 15:30 Europe/Berlin`. Pure. */
export function wordingOf(alertContext: AlertContext): Wording {
  const timeZone = zoneOf(alertContext);
  const read = localTimeIn(timeZone);
  return {
    rules: alertContext.settings.rules,
    localTime: (at) => {
      const local = read(at);
      return `${dayText(local)} ${timeText(local)} ${timeZone}`;
    },
    shortTime: (at) => {
      const local = read(at);
      return `${local.day} ${months[local.month - 1]} ${timeText(local)}`;
    },
  };
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
