import { percent, summedCount, summedMoney, text } from "../columns.ts";
import { declineShares } from "../figures/decline-shares.ts";
import type { Report } from "../report.ts";

export const declines: Report = {
  name: "declines",
  explains:
    "why charges are declined, by code, brand and kind of charge, and what share was recovered later",
  source: "declines",
  sql: new URL("./declines/declines.sql", import.meta.url),
  columns: [
    ...text("currency", "failure_code", "code_group", "brand", "charge"),
    ...summedCount("declines"),
    ...summedMoney("amount"),
    ...percent("share_percent", "recovered_percent"),
  ],
  orderBy: 'currency, declines desc, failure_code collate "C", brand collate "C", charge',
  figures: declineShares,
};
