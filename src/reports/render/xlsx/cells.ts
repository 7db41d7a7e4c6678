import { visible } from "../../../platform/visible-text.ts";
import { decimalText, minorDigits } from "../../../platform/money.ts";
import type { Exponents } from "../../currencies.ts";
import type { Cell, Column, Row } from "../../report.ts";
import { styleNumber } from "./styles.ts";
import type { CellStyle } from "./styles.ts";

/** A spreadsheet keeps so many digits: what is longer stays exact as text. */
const exactDigits = 15;
/** Day 25,569 of a spreadsheet is the first of 1970. */
const firstOf1970 = 25_569;
const dayMs = 86_400_000;

/** Makes `<row>` elements of a report's rows, each cell of its type. */
export function createRowWriter(columns: readonly Column[], exponents: Exponents) {
  const letters = columns.map((_, n) => columnLetters(n));
  const currencyAt = columns.findIndex(({ name }) => name === "currency");
  /** `at`: the row's number in its sheet, from 1; `sumLabel`: it is a sum, in bold, and this stands in its first cell. */
  return (row: Row, at: number, sumLabel?: string): string => {
    const digits = minorDigits(row[currencyAt] ?? null, exponents);
    const isBold = sumLabel !== undefined;
    const cells = row.map((cell, n) =>
      n === 0 && isBold
        ? textXml(sumLabel, `A${at}`, isBold)
        : cellXml(cell, columns[n]?.kind ?? "text", {
            ref: `${letters[n]}${at}`,
            digits,
            isBold,
          }),
    );
    return `<row r="${at}">${cells.join("")}</row>`;
  };
}

/** A row of texts. */
export const textRow = (texts: readonly string[], at: number, isBold: readonly boolean[]): string =>
  `<row r="${at}">${texts.map((text, n) => textXml(text, `${columnLetters(n)}${at}`, isBold[n] ?? false)).join("")}</row>`;

interface CellPlace {
  ref: string;
  /** Of the row's currency; null where they are not known. */
  digits: number | null;
  isBold: boolean;
}

function cellXml(cell: Cell, kind: Column["kind"], { ref, digits, isBold }: CellPlace): string {
  if (cell === null) return "";
  switch (kind) {
    case "text":
      return textXml(cell, ref, isBold);
    case "money":
      return digits === null
        ? numberXml(cell, "minorUnits", ref, isBold)
        : numberXml(decimalText(cell, digits), `money${digits}` as CellStyle, ref, isBold);
    case "count":
    case "number":
    case "percent":
      return numberXml(cell, kind, ref, isBold);
    case "day":
    case "month":
      return valueXml(Date.parse(`${cell}T00:00:00Z`) / dayMs + firstOf1970, kind, ref, isBold);
    case "time":
      return valueXml(Date.parse(cell) / dayMs + firstOf1970, kind, ref, isBold);
  }
}

function numberXml(number: string, style: CellStyle, ref: string, isBold: boolean): string {
  const isExact = number.replace(/\D/g, "").length <= exactDigits;
  return isExact ? valueXml(number, style, ref, isBold) : textXml(number, ref, isBold);
}

const valueXml = (value: string | number, style: CellStyle, ref: string, isBold: boolean): string =>
  `<c r="${ref}" s="${styleNumber(style, isBold)}"><v>${value}</v></c>`;

const textXml = (text: string, ref: string, isBold: boolean): string =>
  `<c r="${ref}" s="${styleNumber("text", isBold)}" t="inlineStr"><is><t xml:space="preserve">${escapeXml(visible(text))}</t></is></c>`;

/** Also what looks like an escape of a spreadsheet's own (ECMA-376, 22.9.2.19), and what XML has no place for. */
const escapeXml = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\ufffe\uffff]/g, "\ufffd")
    .replace(/_(?=x[0-9A-Fa-f]{4}_)/g, "_x005F_")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;");

/** `A`, `B`, … `Z`, `AA`. */
const columnLetters = (n: number): string =>
  (n >= 26 ? columnLetters(Math.floor(n / 26) - 1) : "") + String.fromCharCode(65 + (n % 26));
