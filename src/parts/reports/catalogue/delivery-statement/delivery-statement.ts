import { type Report, summedCount, text } from "../../base/report.ts";

export const deliveryStatement: Report = {
  name: "delivery-statement",
  explains:
    "of what changed at the service, how much it had to announce, what was received, in time or late, missed and healed",
  source: "delivery_statement",
  sql: new URL("./delivery-statement.sql", import.meta.url),
  columns: [
    ...text("resource", "event"),
    ...summedCount("changes", "announced", "received", "in_time", "late", "missed", "healed", "first_fill"),
  ],
  orderBy: 'resource, event collate "C"',
};
