import type { NewsSource } from "../../core/mirror/listener.ts";
import type { Clock } from "../../platform/clock.ts";
import { dayText, localTimeIn, timeText } from "../../platform/local-time.ts";
import type { Wording } from "./rules/wording.ts";
import type { AlertSettings } from "./settings.ts";

/** The deployment's facts that alerts need, in any process that raises them. */
export interface AlertContext {
  settings: AlertSettings;
  /** IANA name. The zone of messages, quiet hours and digests where the settings name none of their own. */
  timeZone: string;
  /** The region whose card-network thresholds apply: `CARD_NETWORK_REGION`. */
  networkRegion: string;
  /** The dashboard's public address, without a slash at its end: messages link to their alerts' pages. Null: none. */
  dashboardUrl: string | null;
  /** This machine's clock: quiet hours, digests. */
  clock: Clock;
  /** The service's clock. */
  serviceClock: Clock;
}

export type FoundBy = NewsSource | "sweep";

/** Source of an alert's change: a source of facts, or a person. */
export type ChangedBy = FoundBy | "person";

export const zoneOf = ({ settings, timeZone }: Pick<AlertContext, "settings" | "timeZone">): string =>
  settings.timeZone ?? timeZone;

/** The wording of times, and the settings of all rules. */
export interface RuleWording extends Wording {
  rules: AlertSettings["rules"];
}

/** The wording of times in rules. Times are in the zone of the alerts: `2026-03-04 15:30 Europe/Berlin`. */
export function wordingOf(alertContext: AlertContext): RuleWording {
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
