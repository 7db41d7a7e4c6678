import { readSuccess } from "../../app/metrics/database-metrics.ts";
import type { CatalogueEntry } from "../../app/metrics/metric.ts";
import { processMetrics } from "../../app/metrics/process-metrics.ts";
import { allParts } from "../parts.ts";

const readings = allParts.flatMap(({ metrics }) => metrics ?? []);

/**
 * All metrics but those that prom-client takes of Node and the process. `tallyhook metrics` prints this list, and tests
 * compare docs/metrics.md, the rules and the panels with it.
 */
export const catalogue: readonly CatalogueEntry[] = [
  ...Object.values(processMetrics),
  readSuccess(readings.map(({ name }) => name)),
  ...readings.flatMap(({ gives }) => gives.map(({ metric }) => metric)),
];
