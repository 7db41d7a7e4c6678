import { InvalidArgumentError } from "commander";
import { readInstant, wantedInstant } from "../../contract/timestamp.ts";
import { type TextKind, readFreeText, wantedText } from "../../platform/free-text.ts";

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

/** Makes a parser for what a person writes, such as a reason. */
export const freeText =
  (kind: TextKind) =>
  (typed: string): string => {
    const text = readFreeText(typed, kind);
    if (text === null) throw new InvalidArgumentError(`Write ${wantedText(kind)}.`);
    return text;
  };

/** Parses an instant given on the command line. */
export function parseInstant(text: string): Date {
  const instant = readInstant(text);
  if (instant === null) throw new InvalidArgumentError(wantedInstant);
  return instant;
}
