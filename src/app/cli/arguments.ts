import { instant, wholeNumber as wholeNumberField } from "../people/fields.ts";
import { parserOf } from "./command.ts";

/** Makes a parser for a command's argument that is a whole number of this range. `unit` is what it counts. */
export const wholeNumber = (min: number, max: number, unit?: string) => parserOf(wholeNumberField(min, max, unit));

/** Parses an instant given on the command line. */
export const parseInstant = parserOf(instant);
