import { z } from "zod";
import { UsageError } from "../../../platform/errors.ts";
import { readInputFile } from "../../../platform/files.ts";
import { type TextKind, readFreeText, wantedText } from "../../../platform/free-text.ts";

const accountName: TextKind = { longest: 64, lines: "one" };

const account = z
  .string()
  .trim()
  .refine((text) => readFreeText(text, accountName) !== null, {
    error: `Write ${wantedText(accountName)}`,
  });
const accountMap = z.strictObject({
  /** The processor's debt: sales are debited, refunds and chargebacks credited. */
  clearing: account,
  sales: account,
  refunds: account,
  chargebacks: account,
});

/** The ledger account for each side of a movement. */
export type AccountMap = z.infer<typeof accountMap>;

export const defaultAccounts: AccountMap = {
  clearing: "1200",
  sales: "4000",
  refunds: "4100",
  chargebacks: "6800",
};

/** Reads a JSON file with all four accounts. Throws `UsageError` that names the first mistake. */
export async function readAccountMap(path: string): Promise<AccountMap> {
  const wanted = `It should be JSON such as ${JSON.stringify(defaultAccounts)}.`;
  const text = (await readInputFile(path)).toString("utf8");
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`The account map ${path} is not JSON. ${wanted}`, { cause });
  }
  const found = checkAccountMap(json);
  if ("accounts" in found) return found.accounts;
  throw new UsageError(`The account map ${path} is wrong. ${found.problem}. ${wanted}`);
}

/** The map, or its first fault. */
export function checkAccountMap(value: unknown): { accounts: AccountMap } | { problem: string } {
  const parsed = accountMap.safeParse(value);
  if (parsed.success) return { accounts: parsed.data };
  const [issue] = parsed.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  return { problem: `${place}${issue?.message ?? "unreadable"}` };
}
