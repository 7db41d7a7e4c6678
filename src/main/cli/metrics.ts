import Table from "cli-table3";
import { type Command, Option } from "commander";
import { type ListedMetric, metricsOfNode, ownMetrics } from "../metrics/list-metrics.ts";
import { metricsPage } from "../metrics/metrics-page.ts";
import type { CliContext } from "../../app/cli/context.ts";

interface MetricsOptions {
  json?: boolean;
  markdown?: boolean;
}

export function registerMetrics(program: Command, context: CliContext): void {
  program
    .command("metrics")
    .description("every metric that processes serve: what it counts, its labels, its alerts")
    .option("--json", "print JSON")
    .addOption(new Option("--markdown", "print docs/metrics.md instead").conflicts("json"))
    .action(({ json, markdown }: MetricsOptions) => {
      if (markdown === true) return void context.stdout.write(metricsPage());
      const listed = [...ownMetrics(), ...metricsOfNode()];
      context.stdout.write(json === true ? `${JSON.stringify(listed)}\n` : tableOf(listed));
    });
}

function tableOf(listed: readonly ListedMetric[]): string {
  const table = new Table({
    head: ["Metric", "Type", "Unit", "Labels", "Series", "Served by", "Alerts"],
    style: { head: [], border: [] },
  });
  for (const { name, type, unit, labels, cardinality, servedBy, alerts } of listed) {
    table.push([
      name,
      type,
      unit ?? "",
      Object.keys(labels).join("\n"),
      cardinality === null ? "few" : String(cardinality),
      servedBy.length === 4 ? "all" : servedBy.join("\n"),
      alerts.join("\n"),
    ]);
  }
  return `${table.toString()}\n"--json" has what each means and what its labels can be; docs/metrics.md says the same.\n`;
}
