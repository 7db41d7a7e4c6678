import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processMetrics } from "../../../src/app/metrics/process-metrics.ts";
import { catalogue, metricsPage, ownMetrics } from "../../../src/main/metrics/list-metrics.ts";
import { projectRoot } from "../../support/project-root.ts";

const own = "## Tallyhook's own";
/** What is said of Node differs by its version. */
const withoutNode = (page: string): string => page.slice(0, page.indexOf("## Of Node"));

test("docs/metrics.md is what the code says of its metrics", () => {
  const page = readFileSync(join(projectRoot, "docs/metrics.md"), "utf8");
  expect(page).toContain(own);
  expect(withoutNode(page), 'run "node src/bin/tallyhook.js metrics --markdown > docs/metrics.md"').toBe(
    withoutNode(metricsPage()),
  );
});

test("metrics are named by Prometheus' conventions, and say what they are", () => {
  for (const { name, type, unit, help } of catalogue) {
    expect(name).toMatch(/^(tallyhook|http_server|db_client)_[a-z_]+[a-z]$/);
    expect(name.endsWith("_total"), name).toBe(type === "counter");
    expect(name.endsWith("_seconds"), name).toBe(unit === "seconds");
    expect(name.endsWith("_minor"), name).toBe(unit === "minor units");
    expect(help, name).toMatch(/^[A-Z0-9].{8,}\.$/);
  }
});

test("no metric but the duration of requests can have more than a few hundred series", () => {
  for (const { name, cardinality } of ownMetrics()) {
    if (name === processMetrics.requestDuration.name) continue;
    expect(cardinality, name).toBeLessThanOrEqual(300);
  }
});
