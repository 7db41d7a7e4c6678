import { type Act, ActRefused } from "../../../app/people/act.ts";
import { UsageError } from "../../../platform/errors.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type FourEyes, takesTwo } from "../close/four-eyes.ts";
import {
  CloseRefused,
  type CloseRefusal,
  type Hindrance,
  type UnreadPart,
  refusalLines,
  sentenceOf,
} from "../close/hindrance.ts";
import type { Preparation } from "../close/prepare-month.ts";

/** The reasons why a month cannot be closed, each with the command that helps. */
export const refusalText = (why: CloseRefusal): string =>
  [
    ...refusalLines(why, lineOf),
    ...(why.verdicts.length === 0
      ? []
      : [`--force "REASON" closes it anyway and prints the reason on every report of it.`]),
  ].join("\n");

/** The same act, with refusals that name the commands that help. */
export const withCommands = <Deps, Input, Done>(act: Act<Deps, Input, Done>): Act<Deps, Input, Done> => ({
  ...act,
  run: (deps, call) =>
    act.run(deps, call).catch((error: unknown) => {
      throw error instanceof CloseRefused ? new UsageError(refusalText(error.why), { cause: error }) : error;
    }),
});

const lineOf = (hindrance: Hindrance): string => [sentenceOf(hindrance), ...commandsFor(hindrance)].join(" ");

function commandsFor(hindrance: Hindrance): string[] {
  switch (hindrance.check) {
    case "read": {
      if (!hindrance.isHole) return [`"${tallyhook("reconcile")}" reads on.`];
      const again = tallyhook(`reconcile ${rangeOf(hindrance.parts)}`);
      return [
        `"${tallyhook("findings list")}" names it. Once the service shows it as it should be, "${again}" reads it ` +
          "again.",
      ];
    }
    case "changes":
      return [`"${tallyhook("reconcile")}" reads the lists that show them, or says why the service does not.`];
    case "findings":
      return [
        `"${tallyhook("findings show ID")}" explains one, "${tallyhook("findings ack ID --note REASON")}" ` +
          "acknowledges it.",
      ];
    case "days": {
      const { report, month, fromUtc, toUtc } = hindrance;
      return [
        `"${tallyhook(`reconcile --from ${fromUtc} --to ${toUtc}`)}" reads the month again, ` +
          `"${tallyhook(`report ${report} --from ${month}`)}" shows the days.`,
      ];
    }
    case "verdict":
      return [`"${tallyhook("reconcile")}" reads the rest.`];
    default:
      return [];
  }
}

/** The range of a run that reads these parts. */
function rangeOf(parts: readonly UnreadPart[]): string {
  const froms = parts.map(({ from_utc: from }) => from ?? "").sort();
  const last = parts
    .map(({ to_utc: to }) => to)
    .sort()
    .at(-1);
  return froms[0] === "" ? "--full" : `--from ${froms[0]} --to ${last}`;
}

/** The refusal to close a month that needs two people before one has prepared it. */
export const notPrepared = (month: string): ActRefused =>
  new ActRefused(
    "hindered",
    `${month} is not prepared, and closing takes two people (REPORTS_CLOSE_FOUR_EYES is always). One runs ` +
      `"${tallyhook(`close prepare ${month} --by NAME`)}", then another closes it.`,
  );

/**
 * The steps that a one-person close skips, for its user to read first; null where there are none. `standing`: an
 * existing preparation.
 */
export function whatIsSkipped(
  setting: FourEyes,
  { month, by, standing }: { month: string; by: string; standing: Preparation | null },
): string | null {
  if (takesTwo(setting, "command") || !takesTwo(setting, "dashboard")) return null;
  const prepared =
    standing === null
      ? ""
      : `${standing.preparedBy.name} has prepared ${month}, and this does NOT close what was prepared: it computes ` +
        "the month again. To close exactly that, approve it on the dashboard.\n";
  return (
    `WARNING: ONE PERSON CLOSES ${month}. The dashboard would ask for two (REPORTS_CLOSE_FOUR_EYES is ${setting}); ` +
    `this command does not. The seal will name ${by} alone, and that name is not checked.\n${prepared}With ` +
    `REPORTS_CLOSE_FOUR_EYES=always the command takes two as well: "${tallyhook("close prepare")}", then close.\n`
  );
}
