import { type Command, Option } from "commander";
import { type ListedMetric, metricsOfNode, metricsPage, ownMetrics } from "../metrics/list-metrics.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

interface MetricsOptions {
  json?: boolean;
  markdown?: boolean;
}

export function registerMetrics(program: Command, context: CliContext): void {
  program
    .command("metrics")
    .option("--json", "print JSON")
    .addOption(new Option("--markdown", "print docs/metrics.md instead").conflicts("json"))
    .action(({ json, markdown }: MetricsOptions) => {
      if (markdown === true) return void context.stdout.write(metricsPage());
      const listed = [...ownMetrics(), ...metricsOfNode()];
      context.stdout.write(json === true ? `${JSON.stringify(listed)}\n` : tableOf(listed));
    });
}

const columns: Columns<ListedMetric> = {
  Metric: ({ name }) => name,
  Type: ({ type }) => type,
  Unit: ({ unit }) => unit ?? "",
  Labels: ({ labels }) => Object.keys(labels),
  Series: ({ cardinality }) => cardinality ?? "few",
  "Served by": ({ servedBy }) => (servedBy.length === 4 ? "all" : servedBy),
  Alerts: ({ alerts }) => alerts,
};

function tableOf(listed: readonly ListedMetric[]): string {
  return `${tableText(columns, listed)}"--json" has what each means and what its labels can be; docs/metrics.md says the same.\n`;
}
