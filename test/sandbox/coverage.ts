import { type StatementGroup, statementGroups } from "./statements.ts";

export interface TestFile {
  name: string;
  text: string;
}

/** The marks of statements in the names of tests, such as `[S] 23`, with the files that bear them. */
export function markedStatements(files: readonly TestFile[]): Map<string, string[]> {
  const marks = new Map<string, string[]>();
  for (const { name, text } of files) {
    for (const [, kind = "", number = ""] of text.matchAll(/\[([SA])\] (\d{1,3})\b/g)) {
      const mark = `${kind} ${number}`;
      const known = marks.get(mark) ?? [];
      if (!known.includes(name)) marks.set(mark, [...known, name]);
    }
  }
  return marks;
}

/** The mark of every statement there is. */
export function allMarks(): string[] {
  return statementGroups.flatMap(marksOf);
}

function marksOf({ first, kinds }: StatementGroup): string[] {
  return Array.from(kinds, (kind, i) => `${kind} ${first + i}`);
}

/** `docs/sandbox-coverage.md`: which statements are tested, and which are not and why. */
export function coverageDocument(
  files: readonly TestFile[],
  reasons: Readonly<Record<number, string>>,
): string {
  const marked = markedStatements(files);
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
    "Generated from the names of the tests: `npx vitest run test/sandbox/coverage.test.ts -u` writes it anew, and the test fails while it is stale.",
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
