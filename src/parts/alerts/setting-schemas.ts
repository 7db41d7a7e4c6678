import { secretVariable } from "../../platform/setting-schemas.ts";

/** Where a channel's secret is. */
export const fromVariable = secretVariable("ALERT_", "ALERT_SETTINGS_FILE");
