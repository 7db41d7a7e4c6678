import { UsageError } from "../platform/errors.ts";
import { nearestName } from "../platform/nearest-name.ts";
import { allReports } from "./catalogue/all.ts";
import type { Report } from "./report.ts";

/** Throws `UsageError` with the nearest name, or all of them. */
export function findReport(name: string): Report {
  const found = allReports.find((report) => report.name === name);
  if (found !== undefined) return found;
  const names = allReports.map((report) => report.name);
  const near = nearestName(name, names);
  const hint = near === null ? `There are ${names.join(", ")}.` : `Did you mean "${near}"?`;
  throw new UsageError(
    `There is no report "${name}". ${hint} "tallyhook report list" explains each.`,
  );
}
