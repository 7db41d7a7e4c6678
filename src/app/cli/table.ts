import Table from "cli-table3";
import { withoutControls } from "../../platform/readable-text.ts";

/** The content of a cell. Null is shown as "-", several texts below each other. */
type Cell = string | number | Date | null | readonly string[];

/** The columns of a table for people: each head, and its cell in a row. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

/** A table for a terminal, which obeys no control character in it. */
export const tableText = <Row>(columns: Columns<Row>, rows: readonly Row[]): string =>
  cellsText(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
  );

/** The same for cells. Without a head, the first cell of each row is its label. */
export function cellsText(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  for (const row of rows) table.push(row.map(cellText));
  return `${table.toString()}\n`;
}

function cellText(cell: Cell): string {
  if (cell === null) return "-";
  if (cell instanceof Date) return cell.toISOString();
  return typeof cell === "object" ? cell.map(withoutControls).join("\n") : withoutControls(String(cell));
}

/** The fields of a row, one a line, their names padded to so many characters. */
export const fieldsText = (fields: object, width: number): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)} ${fieldText(value)}\n`)
    .join("");

function fieldText(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  return withoutControls(typeof value === "string" ? value : JSON.stringify(value));
}
