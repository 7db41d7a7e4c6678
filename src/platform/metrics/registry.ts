import { onDemand } from "../on-demand.ts";
import type { Log } from "../log.ts";

/**
 * The description of a metric for its readers. Names, units and types follow Prometheus' and OpenTelemetry's
 * conventions.
 */
export interface Metric {
  name: string;
  type: "counter" | "gauge" | "histogram";
  /** The last word of its name; null where a number has no unit. */
  unit: "seconds" | "minor units" | null;
  /** One sentence. */
  help: string;
  /** For each label, all of its values, or their greatest number. No value from outside is unbounded. */
  labels: Readonly<Record<string, LabelBound>>;
  /** Upper bounds; of histograms alone. */
  buckets?: readonly number[];
}

export type LabelBound = readonly string[] | { atMost: number };

export interface Sample {
  labels?: Readonly<Record<string, string>>;
  value: number;
}

/** One scrape of a process. */
export interface Exposition {
  contentType: string;
  text(): Promise<string>;
}

export interface Metrics extends Exposition {
  /**
   * Adds a counter or a gauge that is read at each scrape. Without samples, or where `read` throws, the metric is absent
   * from that scrape, and all others are there.
   */
  read(metric: Metric, read: () => readonly Sample[] | Promise<readonly Sample[]>): void;
  /** Adds a histogram. `observe` takes labels in the order of the metric. */
  histogram(metric: Metric): { observe(value: number, ...labels: string[]): void };
  /** The served metrics, as far as each describes itself. */
  described(): { name: string; type: string; help: string }[];
}

/** Gauges whose names end as those of counters do. The same numbers are there by type. */
const misnamed = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/**
 * The metrics of one process, with those of Node and of the process itself. It shares no state with another registry.
 */
export function createMetrics({ log }: { log: Log }): Metrics {
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = onDemand.promClient;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    described: () => registry.getMetricsAsArray().map(({ name, help, type }) => ({ name, help, type: String(type) })),
    read(metric, read) {
      const labelNames = Object.keys(metric.labels);
      const Kind = metric.type === "counter" ? Counter : Gauge;
      new Kind({
        name: metric.name,
        help: metric.help,
        labelNames,
        registers: [registry],
        async collect() {
          let samples: readonly Sample[] = [];
          try {
            samples = await read();
          } catch (err) {
            log.debug({ err, metric: metric.name }, "a metric could not be read");
          }
          // No await from here on: another scrape would add its samples to these.
          this.reset();
          // A metric without labels has a sample from the start: that of the last scrape must not stay.
          if (labelNames.length === 0) this.remove();
          for (const { labels = {}, value } of samples) this.inc(labels, value);
        },
      });
    },
    histogram(metric) {
      const labelNames = Object.keys(metric.labels);
      const made = new Histogram({
        name: metric.name,
        help: metric.help,
        labelNames,
        buckets: [...(metric.buckets ?? [])],
        registers: [registry],
      });
      // Resolving labels costs a hash of them each time; the values are few.
      const children = new Map<string, { observe(value: number): void }>();
      return {
        observe(value, ...labels) {
          const key = labels.join("\n");
          let child = children.get(key);
          if (child === undefined) {
            child = labels.length === 0 ? made : made.labels(...labels);
            children.set(key, child);
          }
          child.observe(value);
        },
      };
    },
  };
}
