import type { Preparation } from "./prepare-month.ts";

/** `REPORTS_CLOSE_FOUR_EYES`: where a month is closed by another person than the one who prepared it. */
export type FourEyes = "dashboard" | "always" | "off";

/** The dashboard knows who is signed in; a command knows a name that it was given. */
type ClosedBy = "dashboard" | "command";

/** Whether a month is closed only as another person prepared it. Pure. */
export const takesTwo = (setting: FourEyes, by: ClosedBy): boolean =>
  setting === "always" || (setting === "dashboard" && by === "dashboard");

/**
 * What a command that closes alone passes over, for its user to read before; null where nothing is. `standing`: what
 * somebody prepared. Pure.
 */
export function whatIsSkipped(
  setting: FourEyes,
  { month, by, standing }: { month: string; by: string; standing: Preparation | null },
): string | null {
  if (takesTwo(setting, "command") || !takesTwo(setting, "dashboard")) return null;
  const prepared =
    standing === null
      ? ""
      : `${standing.preparedBy.name} has prepared ${month}, and this does NOT close what was prepared: it computes the ` +
        "month again. To close exactly that, approve it on the dashboard.\n";
  return (
    `WARNING: ONE PERSON CLOSES ${month}. The dashboard would ask for two (REPORTS_CLOSE_FOUR_EYES is ${setting}); this ` +
    `command does not. The seal will name ${by} alone, and nobody checks that name.\n${prepared}` +
    "With REPORTS_CLOSE_FOUR_EYES=always the command takes two as well: " +
    '"node src/bin/tallyhook.js close prepare", then close.\n'
  );
}
