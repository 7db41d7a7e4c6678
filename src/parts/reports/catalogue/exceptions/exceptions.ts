import { type Report, number, summedMoney, text, time } from "../../base/report.ts";

export const exceptions: Report = {
  name: "exceptions",
  explains: "findings of reconciliation: both values, the amount at risk, age, cause and who acknowledged it",
  source: "exceptions",
  sql: new URL("./exceptions.sql", import.meta.url),
  columns: [
    ...number("finding"),
    ...text("severity", "class", "identity", "resource", "object_id", "service_value", "mirror_value"),
    ...text("currency"),
    ...summedMoney("amount_at_risk"),
    ...time("first_seen"),
    ...number("age_days"),
    ...time("healed_at"),
    ...text("cause", "owner", "note"),
  ],
  orderBy: "first_seen, finding",
  // The note is free text of staff.
  hasPersonalData: true,
};
