/** Where the runbooks are in the program's own folder: docs/runbooks.md has a section for each rule. */
const runbooksFile = "docs/runbooks.md";

/**
 * Where the section about a rule is: below the address of RUNBOOKS_URL, else as a path in the program's folder. Its
 * anchor is the rule's name.
 */
export const runbookOf = (rule: string, runbooksUrl: string | null): string =>
  `${runbooksUrl ?? runbooksFile}#${encodeURIComponent(rule)}`;
