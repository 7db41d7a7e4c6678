import type { Knex } from "knex";
import type { NetworkRegion } from "../base/read-report.ts";
import type { ReportsStandby } from "../base/read-standby.ts";
import type { MonthWork } from "./month-work.ts";
import type { Turns } from "./turns.ts";

/** What the pages of reports need besides what every page is given. */
export interface ReportDesk {
  /**
   * A pool of its own for reports, whose statements may take a minute: never the dashboard's, which other pages need.
   * Opened when it is first asked for.
   */
  readingDb(): Promise<Knex>;
  /** One connection for preparing and closing months, whose statements may take ten minutes. */
  closingDb(): Promise<Knex>;
  /** As `tallyhook report` has it; null: reports are read from the primary. */
  standby: ReportsStandby | null;
  region: NetworkRegion;
  /** Whether a month is closed by another person than the one who prepared it. */
  fourEyes: boolean;
  /** Who reads reports now. */
  turns: Turns;
  /** Who prepares or closes a month now. */
  work: MonthWork;
}
