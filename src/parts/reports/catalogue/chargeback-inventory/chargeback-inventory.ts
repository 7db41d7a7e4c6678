import { type Report, count, money, text } from "../../base/report.ts";
import { balanceSteps } from "../../base/figure.ts";

export const chargebackInventory: Report = {
  name: "chargeback-inventory",
  explains: "opening + received - accepted - dismissed = closing, in count and sum, a currency",
  source: "chargeback_inventory",
  sql: new URL("./chargeback-inventory.sql", import.meta.url),
  columns: [
    ...text("currency"),
    ...["opening", "received", "accepted", "dismissed", "closing"].flatMap((name) => [
      ...count(`${name}_count`),
      ...money(name),
    ]),
  ],
  orderBy: "currency",
  tellsUnknown: true,
  figures: balanceSteps("Chargebacks at hand", [
    { column: "received", label: "Received", sign: 1 },
    { column: "accepted", label: "Accepted", sign: -1 },
    { column: "dismissed", label: "Dismissed", sign: -1 },
  ]),
};
