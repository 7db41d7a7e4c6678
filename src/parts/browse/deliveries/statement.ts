import type { Beside } from "../../../app/dashboard/elements/beside-page.ts";

/** Events due from the service in a span of time, and their receipt. */
export interface Statement {
  from: Date;
  until: Date;
  announced: number;
  received: number;
  inTime: number;
  missed: number;
}

export type StatementFound = Beside<Statement>;
