import { z } from "zod";
import { type NamedTest, isOfTitle } from "./named-tests.ts";
import type { StatedPromise } from "./promises.ts";

/** vitest's JSON report: the parts that are read. */
export const runReport = z.object({
  startTime: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      assertionResults: z.array(z.object({ title: z.string(), status: z.string() })),
    }),
  ),
});
export type RunReport = z.infer<typeof runReport>;

/** Several runs of one state, each of other tests, as one; it began with the first. Pure. */
export const asOneRun = (reports: readonly RunReport[]): RunReport => ({
  startTime: Math.min(...reports.map(({ startTime }) => startTime)),
  testResults: reports.flatMap(({ testResults }) => testResults),
});

export type LastRun = "passed" | "failed" | "not run";

/** What became of a test, and of each of its cases, in a run. Pure. */
function lastRunOf({ file, title }: NamedTest, { testResults }: RunReport): LastRun {
  const states = testResults
    .filter(({ name }) => name.endsWith(`/${file}`))
    .flatMap(({ assertionResults }) => assertionResults)
    .filter((ran) => isOfTitle(ran.title, title))
    .map(({ status }) => status);
  if (states.includes("failed")) return "failed";
  return states.length > 0 && states.every((state) => state === "passed") ? "passed" : "not run";
}

/** A promise holds in a run if all of its tests passed there. Pure. */
export function lastRunOfAll({ tests }: StatedPromise, report: RunReport): LastRun {
  const runs = tests.map((each) => lastRunOf(each, report));
  if (runs.includes("failed")) return "failed";
  return runs.every((run) => run === "passed") ? "passed" : "not run";
}

const head = `# Promises

For who wants to know what is promised and how that is known. Each promise stands with the tests that fail when it does
not hold, and with what became of them in the last run.

Made by \`npm run promises\` from \`test/trust/promises.ts\`; do not edit it by hand.`;

/** The page. `about` says which program ran, and where. Pure. */
export function promisesPage(promises: readonly StatedPromise[], report: RunReport, about: string): string {
  const states = promises.map((each) => lastRunOfAll(each, report));
  const held = states.filter((state) => state === "passed").length;
  const began = new Date(report.startTime)
    .toISOString()
    .replace(/:\d\d\.\d+Z$/, " UTC")
    .replace("T", " ");
  const parts = promises.map(({ promise, tests }, n) => {
    const lines = tests.map((each) => `- \`${each.file}\`: "${each.title}": ${lastRunOf(each, report)}`);
    return `## ${n + 1}. ${promise.replace(/\.$/, "")}\n\nLast run: **${states[n]}**.\n\n${lines.join("\n")}`;
  });
  const last = `**Last run: ${began}, ${about}. ${held} of ${promises.length} promises held.** "Not run" is said of a test that a run left out, as where Redis is not installed.`;
  return `${[head, last, ...parts].join("\n\n")}\n`;
}

/** The page without what a run says of it: what may differ from the declaration in no other way. Pure. */
export const withoutRun = (page: string): string =>
  page
    .replaceAll(/\s+/g, " ")
    .replaceAll(/(?:\*\*|: )(?:passed|failed|not run)\b(?:\*\*)?/g, "")
    .replace(/\*\*Last run: [^*]*\*\*/, "");
