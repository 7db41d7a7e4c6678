import { InvalidArgumentError } from "commander";
import { canonicalTimestamp } from "../service/timestamp.ts";

/** An instant as an argument of the command line. */
export function parseInstant(text: string): Date {
  const canonical = canonicalTimestamp(text);
  if (canonical === null) {
    throw new InvalidArgumentError("Use a time with its offset, such as 2026-03-01T12:00:00Z.");
  }
  return new Date(canonical);
}
