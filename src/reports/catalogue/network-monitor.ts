import { count, month, percent, text } from "../columns.ts";
import { networkRatios } from "../figures/network-ratios.ts";
import type { Report } from "../report.ts";

export const networkMonitor: Report = {
  name: "network-monitor",
  explains:
    "how far each card brand is from its chargeback programme (a lower bound: fraud reports are not known)",
  source: "network_monitor",
  sql: new URL("./network-monitor/network-monitor.sql", import.meta.url),
  columns: [
    ...month("month"),
    ...text("brand", "programme"),
    ...count("sales", "disputes"),
    ...percent("ratio_percent", "threshold_percent"),
    ...count("threshold_disputes", "headroom"),
    ...text("outcome"),
  ],
  orderBy: "month, brand, programme",
  takesRegion: true,
  figures: networkRatios,
};
