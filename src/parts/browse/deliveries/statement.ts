/** Events due from the service in a span of time, and their receipt. */
interface Statement {
  from: Date;
  until: Date;
  announced: number;
  received: number;
  inTime: number;
  missed: number;
}

/** `too slow`: only the report can compute it. `computing`: a later load of the page has it. */
export type StatementFound = Statement | "too slow" | "computing";
