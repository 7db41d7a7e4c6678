import { Registry, collectDefaultMetrics } from "prom-client";
import type { CatalogueEntry } from "../../src/app/metrics/metric.ts";
import { catalogue } from "../../src/main/metrics/list-metrics.ts";
import type { LabelBound } from "../../src/platform/metrics/registry.ts";
import type { Promql } from "./promql.ts";

/** By the name of a series: its labels, and the values that each may have. */
type KnownMetrics = ReadonlyMap<string, Readonly<Record<string, LabelBound>>>;

const many: LabelBound = { atMost: Number.MAX_SAFE_INTEGER };
/** What Prometheus adds to every series, by the scrape configuration beside the rules. */
const targetLabels: Readonly<Record<string, LabelBound>> = {
  job: ["tallyhook"],
  process: ["receiver", "worker", "dashboard", "handlers", "start"],
  instance: many,
};

export const entries: readonly CatalogueEntry[] = catalogue;

let known: Promise<KnownMetrics> | undefined;

/** The catalogue's, those that prom-client takes of Node, and those that Prometheus makes itself. */
export const knownMetrics = (): Promise<KnownMetrics> => (known ??= readKnownMetrics());

async function readKnownMetrics(): Promise<KnownMetrics> {
  const known = new Map<string, Readonly<Record<string, LabelBound>>>([
    ["up", targetLabels],
    ["ALERTS", { alertname: many, alertstate: ["pending", "firing"], severity: many }],
  ]);
  for (const { name, type, labels } of entries) {
    for (const [series, ownLabels] of seriesOf(name, type)) {
      known.set(series, { ...targetLabels, ...labels, ...ownLabels });
    }
  }
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name, type, values } of await registry.getMetricsAsJSON()) {
    const labels = Object.fromEntries(
      values.flatMap((value) => Object.keys(value.labels).map((label) => [label, many])),
    );
    const kind = String(type);
    for (const [series] of seriesOf(name, kind)) {
      known.set(series, { ...targetLabels, ...labels, kind: many });
    }
  }
  return known;
}

const seriesOf = (name: string, type: string): [string, Record<string, LabelBound>][] =>
  type === "histogram"
    ? [
        [`${name}_bucket`, { le: many }],
        [`${name}_sum`, {}],
        [`${name}_count`, {}],
      ]
    : [[name, {}]];

/** What an expression names that no process has: metrics, labels, and values of labels. */
export function unknownNames(known: KnownMetrics, { selectors, grouped }: Promql): string[] {
  const wrong: string[] = [];
  const labels = new Set<string>();
  for (const { metric, matchers } of selectors) {
    const has = known.get(metric);
    if (has === undefined) {
      wrong.push(metric);
      continue;
    }
    for (const label of Object.keys(has)) labels.add(label);
    for (const { label, operator, value } of matchers) {
      const bound = has[label];
      if (bound === undefined) wrong.push(`${metric}{${label}}`);
      else if ("atMost" in bound || !/^=~?$/.test(operator)) continue;
      else {
        const values = operator === "=" ? [value] : value.split("|");
        const none = values.filter((each) => !bound.includes(each));
        wrong.push(...none.map((each) => `${metric}{${label}="${each}"}`));
      }
    }
  }
  return [...wrong, ...grouped.filter((label) => !labels.has(label)).map((label) => `by (${label})`)];
}
