/** `REPORTS_CLOSE_FOUR_EYES`: where a month is closed by another person than the one who prepared it. */
export type FourEyes = "dashboard" | "always" | "off";

/** The dashboard knows the signed-in person; a command only has the name it was given. */
type ClosedBy = "dashboard" | "command";

/** Whether a month can only be closed as another person prepared it. */
export const takesTwo = (setting: FourEyes, by: ClosedBy): boolean =>
  setting === "always" || (setting === "dashboard" && by === "dashboard");
