import { z } from "zod";
import { nearestName } from "../platform/nearest-name.ts";

/** An object of the settings file: a key that it does not know is refused, with the one that was meant. */
export const settingsObject = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      const known = Object.keys(shape);
      return issue.keys.map((key: string) => unknownKey(key, known)).join(" ");
    },
  });

function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  const hint = nearest === null ? `There are: ${known.join(", ")}.` : `Did you mean "${nearest}"?`;
  return `there is no setting ${JSON.stringify(key)} here. ${hint}`;
}
