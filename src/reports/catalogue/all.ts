import { ownReports } from "../own/own-reports.ts";
import type { Report } from "../report.ts";
import { changesAfterClose } from "./changes-after-close.ts";
import { chargebackInventory } from "./chargeback-inventory.ts";
import { chargebacks } from "./chargebacks.ts";
import { cutOff } from "./cut-off.ts";
import { dailyControl } from "./daily-control.ts";
import { declines } from "./declines.ts";
import { deliveryStatement } from "./delivery-statement.ts";
import { dunningFunnel } from "./dunning-funnel.ts";
import { exceptions } from "./exceptions.ts";
import { journal } from "./journal.ts";
import { monthEnd } from "./month-end.ts";
import { mrr } from "./mrr.ts";
import { networkMonitor } from "./network-monitor.ts";
import { pastDueAging } from "./past-due-aging.ts";
import { refunds } from "./refunds.ts";

/** In the order in which they are listed and closed. */
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
