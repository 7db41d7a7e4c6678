import { instant } from "../../../app/people/fields.ts";
import { quoted, tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { printableMessage, withoutControls } from "../../../platform/readable-text.ts";
import { type AccountMap, checkAccountMap, defaultAccounts } from "../base/account-map.ts";
import type { Report } from "../base/report.ts";
import type { ReportRequest } from "../write-report.ts";

/** The names of the fields, which are those of the command's options. */
const optionNames = ["from", "to", "as-of", "currency"] as const;

export const accountNames = Object.keys(defaultAccounts) as (keyof AccountMap)[];

/** Accounts have a field each: a path, as the command takes one, would name a file of the server. */
export const accountField = (name: string): string => `account-${name}`;

/** Whether an address requests the report itself, or its form. */
export const isAsked = (query: URLSearchParams): boolean =>
  [...optionNames, ...accountNames.map(accountField)].some((name) => query.has(name));

/** The request that the command would make of the same options. Throws its `UsageError`. */
export function requestOf(report: Report, query: URLSearchParams): Omit<ReportRequest, "format"> {
  const [from, to, asOf, currency] = optionNames.map((name) => given(query, name));
  const at = asOf === undefined ? undefined : (instant.read(asOf) ?? null);
  if (at === null) {
    const text = printableMessage(asOf ?? "");
    throw new UsageError(`--as-of "${text.slice(0, 80)}" is no time. Use ${instant.wanted}.`);
  }
  return { report, from, to, asOf: at, currency, accounts: accountsOf(query) };
}

/** The accounts of a form; undefined where they are the default ones, or absent. Throws `UsageError`. */
export function accountsOf(form: URLSearchParams): AccountMap | undefined {
  const typed = accountNames.map((name) => [name, given(form, accountField(name))] as const);
  const isDefault = typed.every(([name, text]) => text === undefined || text === defaultAccounts[name]);
  if (isDefault) return undefined;
  const found = checkAccountMap(Object.fromEntries(typed));
  if ("accounts" in found) return found.accounts;
  throw new UsageError(`The accounts are wrong. ${found.problem}. Fill in all four.`);
}

function given(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name)?.trim() ?? "";
  return text === "" ? undefined : text;
}

/** The command that prints the same report. */
export function commandOf(report: string, query: URLSearchParams): string {
  const options = optionNames.flatMap((name) => {
    const text = given(query, name);
    return text === undefined ? [] : [`--${name} ${quoted(withoutControls(text.slice(0, 80)))}`];
  });
  const accounts = accountNames.some((name) => {
    const text = given(query, accountField(name));
    return text !== undefined && text !== defaultAccounts[name];
  });
  const all = [...options, ...(accounts ? ["--accounts FILE"] : [])];
  return [tallyhook("report"), report, ...all].join(" ");
}
