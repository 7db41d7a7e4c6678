/**
 * `npm run promises`: runs the tests that the promises name, and writes docs/promises.md from what became of them.
 * `-- --results FILE` takes a result file of a run that there was, and may be given for each of several runs of one
 * state (`.ci/run` keeps its last ones as `.data/*-results.json`); `--print` prints one line a promise and writes
 * nothing. `--list` prints the files of these tests alone, and `--titles` a pattern of their titles for vitest.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format } from "oxfmt";
import { projectRoot } from "../support/project-root.ts";
import { testNamePattern } from "./named-tests.ts";
import { asOneRun, lastRunOfAll, promisesPage, runReport } from "./promises-page.ts";
import { promises } from "./promises.ts";

const values = readArguments();

const files = [...new Set(promises.flatMap(({ tests }) => tests.map((each) => each.file)))];
if (values.list) {
  console.log(files.join("\n"));
  process.exit();
}
if (values.titles) {
  console.log(testNamePattern([...new Set(promises.flatMap(({ tests }) => tests.map((each) => each.title)))]));
  process.exit();
}

// Before the run: what changes while it goes on was not what ran.
const ranOn = commit();
const texts = values.results?.map((file) => readFileSync(file, "utf8")) ?? [runTests()];
const report = asOneRun(texts.map((text) => runReport.parse(JSON.parse(text))));
for (const each of promises) console.log(`${lastRunOfAll(each, report)}: ${each.promise}`);
if (!values.print) {
  const text = promisesPage(promises, report, `${ranOn}, Node ${process.versions.node}`);
  const { code } = await format("promises.md", text, { printWidth: 120, proseWrap: "always" });
  writeFileSync(join(projectRoot, "docs/promises.md"), code);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        results: { type: "string", multiple: true },
        print: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        titles: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`npm run promises: ${(error as Error).message}`);
    process.exit(64);
  }
}

function runTests(): string {
  const folder = mkdtempSync(join(tmpdir(), "tallyhook-promises-"));
  const file = join(folder, "results.json");
  try {
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
  const git = (...args: string[]) => execFileSync("git", args, { cwd: projectRoot, encoding: "utf8" }).trim();
  try {
    const isChanged = git("status", "--porcelain", "--", ".", ":!docs/promises.md") !== "";
    return `commit ${git("rev-parse", "--short=12", "HEAD")}${isChanged ? " with changes" : ""}`;
  } catch {
    return "no commit known";
  }
}
