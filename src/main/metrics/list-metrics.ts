import { createLog } from "../../platform/log.ts";
import { type LabelBound, createMetrics } from "../../platform/metrics/registry.ts";
import type { CatalogueEntry } from "../../app/metrics/metric.ts";
import { readSuccess } from "../../app/metrics/database-metrics.ts";
import { processMetrics } from "../../app/metrics/process-metrics.ts";
import { allParts } from "../parts.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { wrapped } from "../../platform/readable-text.ts";

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

const head = `# Metrics

For operators who watch Tallyhook with Prometheus, or with a system that reads its format. Rules and panels that use
these metrics are in [monitoring.md](monitoring.md). This page is generated from the code:
\`${tallyhook("metrics --markdown > docs/metrics.md")}\`.

## Reading them

Every process that runs for long serves \`GET /metrics\`, in Prometheus' text format, on \`ADMIN_HOST\` and \`ADMIN_PORT\`
([settings.md](settings.md)). While \`ADMIN_PORT\` is not set, each kind of process has its own, so that all run side by
side on one machine: worker and \`start\` 3001, receiver 3003, dashboard 3004, \`handlers run\` 3005.

- **From the same machine**, nothing else is needed: \`curl http://127.0.0.1:3001/metrics\`.
- **From another one**, set \`METRICS_TOKEN\` (16 characters or more, or \`METRICS_TOKEN_FILE\`), and \`ADMIN_HOST\` to an
  address that the other one reaches. A request without the token gets 401. The token is sent unencrypted: keep the port
  in a network of your own, or put an https proxy in front of it.
- Without a token, a request from elsewhere gets 403, and so does a request through a proxy, or by a host name that is
  not one of this machine: a page in a browser cannot read the metrics.

\`/healthz\`, on the same port, needs no token and reports only whether the process makes progress.

## What to know before you build on them

- **Numbers from the database are the same in every worker.** Take \`max\` over instances, never \`sum\`. They are read at
  most every 15 s, however often they are scraped, on one connection of their own, by statements that end after 3 s and
  read indexes of unfinished work, never whole tables.
- **What cannot be read is absent**, and \`tallyhook_database_read_success\` is 0 for that part. An old number is never
  shown as today's. The other metrics are still served, within about four seconds.
- **Labels are bounded**: a currency is one in ISO 4217, else \`other\`; of handlers, destinations, consumers and channels
  the first hundred by name are shown. No label has an id, an address or a text from outside.
- **Amounts are in minor units**, one series a currency, and for alarms: Prometheus keeps them as floating point
  numbers, which are exact up to 9,007,199,254,740,992. Reports are exact at any size.
- **Counters begin at 0** with each process: use \`rate\` or \`increase\`.
- **Not there**: how many events were ever applied (counting them would read the whole inbox; \`rate\` of
  \`tallyhook_apply_lag_seconds_count\` says how many are applied now), anything by customer or order, the pools of BullMQ
  and of the process of your handlers, and what PostgreSQL, Redis and the machine say of themselves: their own exporters
  do that.
`;

const lineWidth = 120;

/** The page docs/metrics.md. Pure but for the metrics of Node, which this process has. */
export const metricsPage = (): string =>
  [
    head,
    `## Tallyhook's own\n\n${ownMetrics().map(entry).join("")}`,
    `## Of Node and the process\n\nBy [prom-client](https://github.com/siimon/prom-client), in every process; some depend on ` +
      `the version of Node and on the\nsystem.\n\n${metricsOfNode().map(entry).join("")}`,
  ].join("\n");

function entry(metric: ListedMetric): string {
  const { name, type, unit, help, labels, cardinality, servedBy, alerts } = metric;
  const isEverywhere = servedBy.length === 4;
  const facts = [type, ...(unit === null ? [] : [unit]), ...(isEverywhere ? [] : servedBy)];
  const text = [
    `- \`${name}\` (${facts.join(", ")}). ${help}`,
    ...Object.entries(labels).map(
      ([label, values]) =>
        `\`${label}\`${values === null ? "" : `: ${values.map((value) => `\`${value}\``).join(", ")}`}.`,
    ),
    ...(cardinality === null || cardinality === 1 ? [] : [`At most ${cardinality} series.`]),
    ...(alerts.length === 0 ? [] : [`Alerts: ${alerts.join(", ")}.`]),
  ].join(" ");
  return `${wrapped(text, { width: lineWidth, indent: "  " })}\n`;
}
