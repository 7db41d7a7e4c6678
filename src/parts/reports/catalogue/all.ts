import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import type { Report } from "../base/report.ts";
import { ownReports } from "../own/own-reports.ts";
import { changesAfterClose } from "./changes-after-close/changes-after-close.ts";
import { chargebackInventory } from "./chargeback-inventory/chargeback-inventory.ts";
import { chargebacks } from "./chargebacks/chargebacks.ts";
import { cutOff } from "./cut-off/cut-off.ts";
import { dailyControl } from "./daily-control/daily-control.ts";
import { declines } from "./declines/declines.ts";
import { deliveryStatement } from "./delivery-statement/delivery-statement.ts";
import { dunningFunnel } from "./dunning-funnel/dunning-funnel.ts";
import { exceptions } from "./exceptions/exceptions.ts";
import { journal } from "./journal/journal.ts";
import { monthEnd } from "./month-end/month-end.ts";
import { mrr } from "./mrr/mrr.ts";
import { networkMonitor } from "./network-monitor/network-monitor.ts";
import { pastDueAging } from "./past-due-aging/past-due-aging.ts";
import { refunds } from "./refunds/refunds.ts";

/** The program's reports, in the order in which they are listed and closed. */
export const programReports: readonly Report[] = [
  dailyControl,
  exceptions,
  monthEnd,
  cutOff,
  changesAfterClose,
  refunds,
  chargebacks,
  chargebackInventory,
  networkMonitor,
  declines,
  dunningFunnel,
  mrr,
  pastDueAging,
  journal,
  deliveryStatement,
];

/** Every report, the merchant's own last. */
export const allReports: readonly Report[] = [...programReports, ...ownReports];

/** Throws `UsageError` that suggests the nearest name, or lists all names. */
export function findReport(name: string): Report {
  const found = allReports.find((report) => report.name === name);
  if (found !== undefined) return found;
  const names = allReports.map((report) => report.name);
  const near = nearestName(name, names);
  const hint = near === null ? `There are ${names.join(", ")}.` : `Did you mean "${near}"?`;
  throw new UsageError(`There is no report "${name}". ${hint} "${tallyhook("report list")}" explains each.`);
}
