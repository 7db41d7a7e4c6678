import type { Reason } from "../page-group.ts";

/** The path of a section of docs/runbooks.md, which `pages/docs` shows. `rule`: an alert's rule, or any heading there. */
export const runbookPath = (rule: string): string => `/docs/runbooks#${rule.toLowerCase()}`;

/** The next click of a matter for which there is a runbook. */
export const runbook = (rule: string): Pick<Reason, "path" | "next"> => ({
  path: runbookPath(rule),
  next: "What to do",
});
