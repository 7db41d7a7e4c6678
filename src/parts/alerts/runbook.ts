/** Where the runbooks are in the program's own folder: docs/runbooks.md has a section for each rule. */
const runbooksFile = "docs/runbooks.md";

/**
 * The place of a rule's section: below the address of RUNBOOKS_URL, else a path in the program's folder. Its anchor is
 * the rule's name.
 */
export const runbookOf = (rule: string, runbooksUrl: string | null): string =>
  `${runbooksUrl ?? runbooksFile}#${encodeURIComponent(rule)}`;
