/** `REPORTS_CLOSE_FOUR_EYES`: where a month is closed by another person than the one who prepared it. */
export type FourEyes = "dashboard" | "always" | "off";

/** The dashboard knows who is signed in; a command knows a name that it was given. */
type ClosedBy = "dashboard" | "command";

/** Whether a month is closed only as another person prepared it. */
export const takesTwo = (setting: FourEyes, by: ClosedBy): boolean =>
  setting === "always" || (setting === "dashboard" && by === "dashboard");
