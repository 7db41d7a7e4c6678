import { createLog } from "../../platform/log.ts";
import { type LabelBound, createMetrics } from "../../platform/metrics/registry.ts";
import type { CatalogueEntry } from "../../app/metrics/metric.ts";
import { catalogue } from "./catalogue.ts";

/** A metric as people read of it. */
export interface ListedMetric {
  name: string;
  type: string;
  unit: string | null;
  help: string;
  /** All values of the label; null: names, at most `cardinality` of them. */
  labels: Record<string, readonly string[] | null>;
  /** How many series a process has of it at most; null: a handful, by the version of Node. */
  cardinality: number | null;
  /** In addition to `start`, which serves all. */
  servedBy: readonly string[];
  /** Alerts in deploy/prometheus/tallyhook.rules.yml that use it. */
  alerts: readonly string[];
}

/** Our own metrics. */
export const ownMetrics = (): ListedMetric[] => catalogue.map(listed);

/** Those that prom-client takes of Node and of the process, as this process has them. */
export function metricsOfNode(): ListedMetric[] {
  const log = createLog({ level: "silent", name: "metrics", destination: process.stderr });
  return createMetrics({ log })
    .described()
    .map(({ name, type, help }) => ({
      name,
      type,
      unit: /_(bytes|seconds)(_total)?$/.exec(name)?.[1] ?? null,
      help: help.endsWith(".") ? help : `${help}.`,
      labels: {},
      cardinality: null,
      servedBy: ["receiver", "worker", "dashboard", "handlers"],
      alerts: alertsOfNode[name] ?? [],
    }));
}

/** Which alerts use a metric that is not ours. */
const alertsOfNode: Readonly<Record<string, readonly string[]>> = {
  nodejs_eventloop_lag_max_seconds: ["TallyhookEventLoopBlocked"],
};

function listed(metric: CatalogueEntry): ListedMetric {
  const { name, type, unit, help, labels, buckets, servedBy, alerts } = metric;
  const series = Object.values(labels).reduce((product, bound) => product * boundOf(bound), 1);
  // A histogram has its buckets, the last one without a bound, its sum and its count.
  const each = type === "histogram" ? (buckets?.length ?? 0) + 3 : 1;
  return {
    name,
    type,
    unit,
    help,
    labels: Object.fromEntries(
      Object.entries(labels).map(([label, bound]) => [label, "atMost" in bound ? null : bound]),
    ),
    cardinality: series * each,
    servedBy,
    alerts,
  };
}

const boundOf = (bound: LabelBound): number => ("atMost" in bound ? bound.atMost : bound.length);
