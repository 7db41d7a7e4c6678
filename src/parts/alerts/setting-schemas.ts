import { secretVariable } from "../../platform/setting-schemas.ts";

/** The variable with a channel's secret. */
export const fromVariable = secretVariable("ALERT_", "ALERT_SETTINGS_FILE");
