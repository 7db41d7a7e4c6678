import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The programs that the recipes of docs/finance.md name. */
export const ledgerPrograms = ["ledger", "hledger", "bean-check", "soffice"] as const;

export const isInstalled = (program: (typeof ledgerPrograms)[number]): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
