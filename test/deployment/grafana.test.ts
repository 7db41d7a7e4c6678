import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { projectRoot } from "../support/project-root.ts";
import { prometheusAvailable, promtool } from "../support/prometheus.ts";
import { entries, knownMetrics, unknownNames } from "./known-metrics.ts";
import { readAlertRules, readDashboard, readYaml, withoutVariables } from "./monitoring-files.ts";
import { readPromql } from "./promql.ts";

const dashboard = readDashboard();
const panels = dashboard.panels.filter(({ type }) => type !== "row");
const rules = readAlertRules();
const expressions = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr: withoutVariables(expr), legendFormat })),
);

test("the dashboard brings no id of an instance, and takes its data source from a variable", () => {
  expect(dashboard.id).toBeNull();
  expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
  expect(dashboard.templating.list).toMatchObject([{ name: "datasource", type: "datasource" }]);
  for (const { title, datasource, targets = [] } of panels) {
    const uids = [datasource, ...targets.map((target) => target.datasource)].map((source) => source?.uid);
    expect(new Set(uids), title).toEqual(new Set(["${datasource}"]));
  }
});

test.each(panels)("the panel $title says what it shows, in which unit", (panel) => {
  expect(panel.description?.length).toBeGreaterThan(12);
  if (panel.type !== "heatmap") expect(panel.fieldConfig?.defaults.unit).toBeTypeOf("string");
  expect(panel.targets?.length).toBeGreaterThan(0);
});

test("panels have an id each and do not overlap", () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken.has(`${x} ${y}`), `${title} lies on another panel`).toBe(false);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

test.each(expressions)("$title: the program has what $expr names", async ({ expr, legendFormat }) => {
  const known = await knownMetrics();
  const promql = readPromql(expr);
  expect(unknownNames(known, promql)).toEqual([]);
  const labels = promql.selectors.flatMap(({ metric }) => Object.keys(known.get(metric) ?? {}));
  for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
    expect(labels, legendFormat).toContain(label);
    // What an aggregation leaves out stands in no legend.
    if (promql.grouped.length > 0) expect(promql.grouped, legendFormat).toContain(label);
  }
});

test("would find a metric, a label and a value that no process has", async () => {
  const expr =
    'sum by (colour) (rate(tallyhook_receiver_requests_total{outcome="lost", size="1"}[1m])) / tallyhook_gone';
  expect(unknownNames(await knownMetrics(), readPromql(expr))).toEqual([
    'tallyhook_receiver_requests_total{outcome="lost"}',
    "tallyhook_receiver_requests_total{size}",
    "tallyhook_gone",
    "by (colour)",
  ]);
});

test.skipIf(!prometheusAvailable)("every expression of a panel is PromQL to Prometheus", () => {
  const folder = mkdtempSync(join(tmpdir(), "tallyhook-panels-"));
  try {
    const recorded = expressions.map(({ expr }, n) => ({ record: `panel:${n}`, expr }));
    const file = join(folder, "panels.rules.yml");
    writeFileSync(file, stringify({ groups: [{ name: "panels", rules: recorded }] }));
    const { isContent, output } = promtool("check", "rules", file);
    expect(output).toContain(`SUCCESS: ${recorded.length} rules found`);
    expect(isContent).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("every metric of the catalogue is on a panel", () => {
  const shown = new Set(
    expressions.flatMap(({ expr }) => readPromql(expr).selectors.map(({ metric }) => metric.replace(/_bucket$/, ""))),
  );
  expect(entries.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
});

describe("alerts on the dashboard", () => {
  const namedBy = (text = ""): string[] => [...new Set(text.match(/\bTallyhook[A-Z]\w+/g))];

  test("every alert is named on a panel, which links to its runbook; and no other is", () => {
    for (const { title, description, links = [] } of panels) {
      const urls = namedBy(description).map(
        (name) => rules.find(({ alert }) => alert === name)?.annotations["runbook_url"],
      );
      expect(
        links.map(({ url }) => url),
        title,
      ).toEqual(urls);
    }
    const named = panels.flatMap(({ description }) => namedBy(description));
    expect([...new Set(named)].toSorted()).toEqual([...new Set(rules.map(({ alert }) => alert))].toSorted());
  });

  test.each(panels)("$title: a threshold is that of an alert", ({ description, fieldConfig, title }) => {
    const limits = rules
      .filter(({ alert }) => namedBy(description).includes(alert))
      .flatMap(({ expr }) => readPromql(expr).limits)
      // A step of Grafana begins at its value: above 0 of what is counted is from 1 on.
      .map(({ operator, value }) => (operator === ">" && value === 0 ? 1 : value));
    const steps = (fieldConfig?.defaults.thresholds?.steps ?? []).flatMap(({ value }) => value ?? []);
    if (namedBy(description).length > 0) for (const step of steps) expect(limits).toContain(step);
    else for (const step of steps) expect(step, title).toBe(1);
  });
});

test("Grafana of the compose file finds its data source and the dashboard where they are mounted", () => {
  const read = <T>(name: string) => readYaml<T>(join(projectRoot, "deploy/grafana/provisioning", name));
  const { datasources } = read<{ datasources: { type: string; url: string; jsonData: object }[] }>(
    "datasources/prometheus.yml",
  );
  const { global } = readYaml<{ global: { scrape_interval: string } }>(
    join(projectRoot, "deploy/prometheus/prometheus.compose.yml"),
  );
  expect(datasources).toMatchObject([
    {
      type: "prometheus",
      url: "http://prometheus:9090",
      jsonData: { timeInterval: global.scrape_interval },
    },
  ]);
  const { providers } = read<{ providers: { options: { path: string } }[] }>("dashboards/tallyhook.yml");
  const { services } = readYaml<{ services: { grafana: { volumes: string[] } } }>(
    join(projectRoot, "docker-compose.monitoring.yml"),
  );
  expect(services.grafana.volumes).toContain(
    `./deploy/grafana/tallyhook.json:${providers[0]?.options.path}/tallyhook.json:ro`,
  );
});
