import { coveredStatements } from "./covered-statements.ts";
import { type StatementGroup, statementGroups } from "./statements.ts";

export interface TestFile {
  name: string;
  text: string;
}

/** The statements that tests cover, such as `S 23`, with the files of these tests. */
export function markedStatements(): Map<string, string[]> {
  const marks = new Map<string, string[]>();
  for (const [name, titles] of Object.entries(coveredStatements)) {
    for (const mark of Object.values(titles).flatMap(marksIn)) {
      const known = marks.get(mark) ?? [];
      if (!known.includes(name)) marks.set(mark, [...known, name]);
    }
  }
  return marks;
}

/** `S 1, 2; A 9`. */
const marksIn = (text: string): string[] =>
  text.split("; ").flatMap((part) =>
    part
      .slice(2)
      .split(", ")
      .map((number) => `${part[0]} ${number}`),
  );

/** What the table names and no test file has: a test whose title or file was changed. */
export function titlesWithoutTest(files: readonly TestFile[]): string[] {
  const texts = new Map(files.map(({ name, text }) => [name, text]));
  return Object.entries(coveredStatements).flatMap(([name, titles]) =>
    Object.keys(titles)
      .filter((title) => {
        const text = texts.get(name) ?? "";
        return !text.includes(JSON.stringify(title)) && !text.includes(`\`${title}\``);
      })
      .map((title) => `${name}: ${title}`),
  );
}

/** The mark of every statement there is. */
export function allMarks(): string[] {
  return statementGroups.flatMap(marksOf);
}

function marksOf({ first, kinds }: StatementGroup): string[] {
  return Array.from(kinds, (kind, i) => `${kind} ${first + i}`);
}

/** `docs/sandbox-coverage.md`: which statements are tested, and which are not and why. */
export function coverageDocument(reasons: Readonly<Record<number, string>>): string {
  const marked = markedStatements();
  const groups = statementGroups.map((group, i) => {
    const marks = marksOf(group);
    const tested = marks.filter((mark) => marked.has(mark));
    const where = [...new Set(tested.flatMap((mark) => marked.get(mark) ?? []))].sort();
    return { number: i + 1, title: group.title, marks, tested, where };
  });
  const rows = groups.map(
    ({ number, title, marks, tested, where }) =>
      `| ${number}. ${title} | ${share(marks, tested, "S")} | ${share(marks, tested, "A")} | ${where.join(", ")} |`,
  );
  const untested = groups.flatMap(({ marks }) => marks.filter((mark) => !marked.has(mark)));
  const all = groups.flatMap(({ marks }) => marks);
  const tested = groups.flatMap((group) => group.tested);
  return [
    "# What the sandbox's tests cover",
    "",
    "Generated from test/sandbox/covered-statements.ts by `npm test -- test/sandbox/coverage.test.ts -u`; a test fails while it is out of date.",
    "[S] is stated in the interface, [A] a default where the interface shows nothing.",
    "",
    `Tested: ${share(all, tested, "S")} [S], ${share(all, tested, "A")} [A].`,
    "",
    "| Group | [S] | [A] | Files in test/sandbox |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "## Not tested",
    "",
    "| Statement | Why |",
    "| --- | --- |",
    ...untested.map((mark) => {
      const [kind = "", number = ""] = mark.split(" ");
      return `| [${kind}] ${number} | ${reasons[Number(number)] ?? defaultReason} |`;
    }),
    "",
  ].join("\n");
}

const defaultReason = "no test of its own yet";

function share(marks: readonly string[], tested: readonly string[], kind: string): string {
  const of = (list: readonly string[]) => list.filter((mark) => mark.startsWith(kind)).length;
  return `${of(tested)} of ${of(marks)}`;
}
