import type { Report } from "../base/report.ts";

/**
 * Your own reports, a folder each: `own/<name>/<name>.ts` with the report and `<name>.sql` with its function
 * (docs/extend.md). New versions of Tallyhook never change this folder.
 */
export const ownReports: readonly Report[] = [];
