import { type DatabaseRights } from "../../app/rights.ts";

export const reportsRights: DatabaseRights = {
  tables: {
    // Closing or preparing a month locks these tables, which takes the right to update: their triggers refuse updates.
    "reports.closes": { backup: "keep", worker: "r", reports: "arL", dashboard: "arL", bi: "r" },
    "reports.preparations": { backup: "keep", reports: "arL", dashboard: "arL" },
    // Its triggers write it.
    "reports.closings": { backup: "keep" },
    "reports.closed_reports": {
      backup: "keep",
      worker: "r",
      reports: "ar",
      dashboard: "ar",
      bi: "r",
    },
    "reports.closed_rows": { backup: "keep", worker: "r", reports: "ar", dashboard: "ar", bi: "r" },
    "reports.closed_movements": {
      backup: "keep",
      worker: "r",
      reports: "ar",
      dashboard: "ar",
      bi: "r",
    },
    "reports.closed_evidence": {
      backup: "keep",
      worker: "r",
      reports: "ar",
      dashboard: "ar",
      bi: "r",
    },
    "reports.preparation_ends": { backup: "keep", reports: "ar", dashboard: "ar" },
    "reports.mailings": { backup: "keep", worker: "arw" },
  },
  functions: {
    "reports.refuse_addition": [],
    "reports.check_close": [],
  },
  given: ["reports.closes.closed_at", "reports.mailings.next_attempt_at"],
};
