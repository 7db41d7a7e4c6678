import type { Knex } from "knex";
import type { NetworkRegion } from "../base/read-report.ts";
import type { ReportsStandby } from "../base/read-standby.ts";
import type { MonthWork } from "./month-work.ts";
import type { Turns } from "./turns.ts";

/** Dependencies of the report pages, in addition to those of every page. */
export interface ReportDesk {
  /**
   * A pool of its own for reports, whose statements may take a minute: never the dashboard's, which other pages need.
   * Opened at the first use.
   */
  readingDb(): Promise<Knex>;
  /** One connection for preparing and closing months, whose statements may take ten minutes. */
  closingDb(): Promise<Knex>;
  /** From the same setting as `tallyhook report`; null: reports are read from the primary. */
  standby: ReportsStandby | null;
  region: NetworkRegion;
  /** Whether a month must be closed by another person than the one who prepared it. */
  fourEyes: boolean;
  /** The readers of reports. */
  turns: Turns;
  work: MonthWork;
}
