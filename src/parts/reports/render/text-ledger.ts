import { createHash } from "node:crypto";
import { UsageError } from "../../../platform/errors.ts";
import { decimalText, minorDigits } from "../../../platform/money.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { factLines } from "../base/report-facts.ts";
import type { Exponents } from "../base/currencies.ts";
import type { RowByColumn } from "../base/figure.ts";
import type { Row } from "../base/report.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";

/** The file syntax of a program of plain-text accounting. */
interface Dialect {
  program: string;
  /** Allowed account names. */
  account: RegExp;
  accounts: string;
  head: (entry: { day: string; isFinal: boolean; number: string }) => string;
  commodity: (code: string) => string;
}

const title = "Tallyhook journal";
const flag = (isFinal: boolean): string => (isFinal ? "*" : "!");

/** One syntax for ledger (3) and hledger: two spaces end an account's name, and a code with a digit or dot is quoted. */
const ledger: Dialect = {
  program: "ledger and hledger",
  account: /^[\p{L}\p{N}](?: ?[\p{L}\p{N}:._/&+-])*$/u,
  accounts: "letters, digits, single spaces and : . _ / & + -",
  head: ({ day, isFinal, number }) => `${day} ${flag(isFinal)} (${number}) ${title}`,
  commodity: (code) => (/^[A-Z]+$/.test(code) ? code : `"${code}"`),
};

/** Accounts are not opened here: they are opened once, and a journal comes every month. */
const beancount: Dialect = {
  program: "beancount",
  account: /^(?:Assets|Liabilities|Equity|Income|Expenses)(?::[\p{Lu}\p{Nd}][\p{L}\p{Nd}-]*)+$/u,
  accounts: "names such as Assets:Clearing, Income:Sales, Income:Refunds and Expenses:Chargebacks",
  head: ({ day, isFinal, number }) => `${day} ${flag(isFinal)} "${title}" ^${number}`,
  commodity: (code) => code,
};

/**
 * Renders the journal as text that ledger, hledger or beancount reads as it is: one balanced transaction for each entry
 * with a posting for each line, `*` where it is final and `!` where it is preliminary; below it, as comments, the facts.
 * Throws `UsageError` for an account that the program cannot have.
 */
const renderTextLedger =
  (dialect: Dialect) =>
  ({ columns, exponents, write }: RenderingInput): Rendering => {
    const names = columns.map(({ name }) => name);
    let entry: string | null = null;
    const textOf = (cells: Row): string => {
      const row: RowByColumn = Object.fromEntries(names.map((name, n) => [name, cells[n] ?? null]));
      const number = numberOf(row);
      const isNext = number !== entry;
      const separator = entry === null ? "" : "\n";
      entry = number;
      const head = dialect.head({
        day: row["date"] ?? "",
        isFinal: row["status"] === "final",
        number,
      });
      return `${isNext ? `${separator}${head}\n` : ""}${posting(row, dialect, exponents)}`;
    };
    return {
      rows: (rows) => write(rows.map((row) => textOf(row)).join("")),
      end: (about) => {
        const facts = factLines(about).map(([label, value]) => `; ${label.padEnd(10)} ${withoutControls(value)}\n`);
        return write(`${entry === null ? "" : "\n"}${facts.join("")}`);
      },
    };
  };

export const renderLedger = renderTextLedger(ledger);
export const renderBeancount = renderTextLedger(beancount);

/** The entry's number, such as `TH-20261031-USD`; its last part, the currency, may be any text. */
const numberOf = (row: RowByColumn): string => (/^[A-Z]+-\d+-/.exec(row["number"] ?? "")?.[0] ?? "") + codeOf(row);

function posting(row: RowByColumn, dialect: Dialect, exponents: Exponents): string {
  const account = row["account"] ?? "";
  if (!dialect.account.test(account)) {
    throw new UsageError(
      `${capitalized(dialect.program)} cannot have the account "${withoutControls(account)}": it takes ` +
        `${dialect.accounts}. Name such accounts in the account map, before a month is closed with it; lines of a month ` +
        "that is closed keep their accounts, and --format csv takes any.",
    );
  }
  const minor = (BigInt(row["debit"] ?? "0") - BigInt(row["credit"] ?? "0")).toString();
  const digits = minorDigits(row["currency"] ?? null, exponents);
  const code = codeOf(row);
  const amount =
    digits === null
      ? `${minor} ${dialect.commodity(`${code}.MINOR`)}`
      : `${decimalText(minor, digits)} ${dialect.commodity(code)}`;
  return `    ${account}  ${amount}  ; ${withoutControls(row["description"] ?? "")}\n`;
}

const capitalized = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The currency as a commodity that every program takes. A text that is no code gets a hash. */
function codeOf(row: RowByColumn): string {
  const code = (row["currency"] ?? "").toUpperCase();
  if (/^[A-Z][A-Z0-9]{1,14}$/.test(code)) return code;
  return `X${createHash("sha256").update(code).digest("hex").slice(0, 12).toUpperCase()}`;
}
