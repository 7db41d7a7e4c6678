import { InvalidArgumentError } from "commander";
import { readInstant, wantedInstant } from "../../core/contract/timestamp.ts";

/** Makes a parser for a command's argument that is a whole number of this range. `unit` is what it counts. */
export function wholeNumber(min: number, max: number, unit?: string): (text: string) => number {
  const of = unit === undefined ? "" : ` of ${unit}`;
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Use a whole number${of} from ${min} to ${max}.`);
    }
    return value;
  };
}

/** Parses an instant given on the command line. */
export function parseInstant(text: string): Date {
  const instant = readInstant(text);
  if (instant === null) throw new InvalidArgumentError(wantedInstant);
  return instant;
}
