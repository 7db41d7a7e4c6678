import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/project-root.ts";

/** A test by its file and its title as the source has it, `%s` and `${…}` included. */
export interface NamedTest {
  file: string;
  title: string;
}

/** The tests that a page of `docs/` names: `` `test/….test.ts`: "title" ``, however the lines are wrapped. Pure. */
export function testsNamedIn(text: string): NamedTest[] {
  const unwrapped = text.replaceAll(/\s+/g, " ");
  return [...unwrapped.matchAll(/`(test\/[^`]+\.test\.ts)`: "([^"]+)"/g)].map(([, file = "", title = ""]) => ({
    file,
    title,
  }));
}

/** Those of them that are not in the suite. */
export function missingTests(named: readonly NamedTest[]): string[] {
  return named
    .filter(({ file, title }) => {
      const path = join(projectRoot, file);
      return !existsSync(path) || !declares(readFileSync(path, "utf8"), title);
    })
    .map(({ file, title }) => `${file}: ${title}`);
}

/** Whether a source has a test of this title: the string is the first argument of a call that is no `describe`. Pure. */
export function declares(source: string, title: string): boolean {
  return [JSON.stringify(title), `\`${title}\``].some((literal) => {
    let at = source.indexOf(literal);
    while (at >= 0) {
      const before = source.slice(0, at).trimEnd();
      if (before.endsWith("(") && !/describe(?:\.skip|\.skipIf\([^)]*\))?\($/.test(before)) return true;
      at = source.indexOf(literal, at + 1);
    }
    return false;
  });
}

/** Whether a test of a run, by its full title, is of this source title. Pure. */
export const isOfTitle = (ran: string, title: string): boolean => new RegExp(`^${patternOf(title)}$`).test(ran);

/** For vitest's `--testNamePattern`, which sees the titles of the groups before a test's own: those tests alone. Pure. */
export const testNamePattern = (titles: readonly string[]): string => `(?:${titles.map(patternOf).join("|")})$`;

function patternOf(title: string): string {
  const parts = title.split(/%[a-z#]|\$\{[^}]*\}|\$\w+/);
  return parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^]*");
}
