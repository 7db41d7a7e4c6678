import { summedCount, text } from "../columns.ts";
import type { Report } from "../report.ts";

export const deliveryStatement: Report = {
  name: "delivery-statement",
  explains:
    "of what changed at the service, how much was announced, in time or late, and what was missed and healed",
  source: "delivery_statement",
  columns: [
    ...text("resource"),
    ...summedCount("changes", "announced", "in_time", "late", "missed", "healed", "first_fill"),
  ],
  orderBy: "resource",
};
