import { z } from "zod";
import {
  expected,
  listOf,
  oneOf,
  secretVariable,
  settingsObject,
  wholeNumber,
  yesOrNo,
} from "../../platform/setting-schemas.ts";
import { type AlertSeverity, alertSeverities } from "./message.ts";

/** The variable with a channel's secret. */
export const fromVariable = secretVariable("ALERT_", "ALERT_SETTINGS_FILE");

export const severity = oneOf(alertSeverities);
export const channelNames = listOf(z.string(expected('the name of a channel, such as "log"')), '["log"]');

/**
 * The settings of a rule: whether it is on, its severity, its channels (if omitted: `defaultChannels`), and its
 * thresholds. `about` is its comment in alerts.example.jsonc.
 */
export const ruleSettings = <Thresholds extends z.core.$ZodLooseShape>(
  about: string,
  fallback: AlertSeverity,
  thresholds: Thresholds,
) =>
  settingsObject({
    enabled: yesOrNo.default(true),
    severity: severity.default(fallback),
    channels: channelNames.optional(),
    ...thresholds,
    // Every key has a default or is optional, which the type of an arbitrary shape cannot express.
  })
    .prefault({} as never)
    .describe(about);

export const count = (min: number, max: number, fallback: number) => wholeNumber(min, max).default(fallback);

const share = expected("a share above 0 and up to 1, such as 0.8 for 80 %");
export const ratio = (fallback: number) => z.number(share).gt(0, share).max(1, share).default(fallback);
