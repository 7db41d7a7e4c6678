/** What the service had to announce in a span of time, and what of it came. */
interface Statement {
  from: Date;
  until: Date;
  announced: number;
  received: number;
  inTime: number;
  missed: number;
}

/** `too slow`: only the report can say it. `computing`: a page that is loaded later has it. */
export type StatementFound = Statement | "too slow" | "computing";
