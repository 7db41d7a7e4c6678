/**
 * `npm run promises`: runs the tests that the promises name, and writes docs/promises.md from what became of them.
 * `-- --results FILE` takes a result file of a run that there was (`.ci/run` keeps the last one of all tests in
 * `.data/test-results.json`); `--print` prints one line a promise and writes nothing.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format } from "prettier";
import { projectRoot } from "../support/project-root.ts";
import { lastRunOfAll, promisesPage, runReport } from "./promises-page.ts";
import { promises } from "./promises.ts";

const { values } = parseArgs({
  options: { results: { type: "string" }, print: { type: "boolean", default: false } },
});

// Before the run: what changes while it goes on was not what ran.
const ranOn = commit();
const report = runReport.parse(
  JSON.parse(values.results === undefined ? runTests() : readFileSync(values.results, "utf8")),
);
for (const each of promises) console.log(`${lastRunOfAll(each, report)}: ${each.promise}`);
if (!values.print) {
  const text = promisesPage(promises, report, `${ranOn}, Node ${process.versions.node}`);
  const page = await format(text, { parser: "markdown", printWidth: 120, proseWrap: "always" });
  writeFileSync(join(projectRoot, "docs/promises.md"), page);
}

function runTests(): string {
  const folder = mkdtempSync(join(tmpdir(), "tallyhook-promises-"));
  const file = join(folder, "results.json");
  try {
    const files = [...new Set(promises.flatMap(({ tests }) => tests.map((each) => each.file)))];
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
    // A failed test is a result, which the page shows.
    spawnSync("npx", ["--no-install", "vitest", "run", ...files, ...reporters], {
      cwd: projectRoot,
      stdio: "inherit",
    });
    return readFileSync(file, "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The commit that the tests ran on, as far as can be known: with changes beside it, it says so. */
function commit(): string {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: projectRoot, encoding: "utf8" }).trim();
  try {
    const isChanged = git("status", "--porcelain", "--", ".", ":!docs/promises.md") !== "";
    return `commit ${git("rev-parse", "--short=12", "HEAD")}${isChanged ? " with changes" : ""}`;
  } catch {
    return "no commit known";
  }
}
