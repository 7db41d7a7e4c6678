import { type Report, summedCount, text } from "../../base/report.ts";

export const deliveryStatement: Report = {
  name: "delivery-statement",
  explains: "per event type: events due, received on time, received late, missed, and healed",
  source: "delivery_statement",
  sql: new URL("./delivery-statement.sql", import.meta.url),
  columns: [
    ...text("resource", "event"),
    ...summedCount("changes", "announced", "received", "in_time", "late", "missed", "healed", "first_fill"),
  ],
  orderBy: 'resource, event collate "C"',
};
