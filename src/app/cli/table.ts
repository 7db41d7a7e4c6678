import { withoutControls } from "../../platform/readable-text.ts";
import { brokenLines, displayWidth, padded, shortenedMiddle } from "./display-width.ts";
import { screenWidth } from "./screen.ts";

/** The content of a cell. Null is shown as "-", several texts below each other. */
export type Cell = string | number | Date | null | readonly string[];

/** The columns of a table for people: each head, and its cell in a row. The more important a column, the earlier. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

interface Grid {
  /** Without a head, the first cell of each row is its label. */
  head: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** Heads of the columns that a narrow terminal leaves out first, in this order; then the last ones. */
  spare?: readonly string[];
  /** Whether the cells of each column are numbers, also where they are written as text; absent: by their types. */
  numeric?: readonly boolean[];
}

/** A table for a terminal, which obeys no control character in it. Output that is no terminal is never cut. */
export const tableText = <Row>(columns: Columns<Row>, rows: readonly Row[], spare: readonly string[] = []): string =>
  cellsText({
    head: Object.keys(columns),
    rows: rows.map((row) => Object.values(columns).map((cell) => cell(row))),
    spare,
  });

/** The same for cells. */
export const cellsText = (grid: Grid, width = screenWidth()): string => `${layOut(grid, width).join("\n")}\n`;

const gap = "  ";
/** An id keeps so much that two of a list can be told apart; the one that names the row keeps more. */
const shortestId = 12;
const shortestName = 24;
/** A narrower column of sentences is hard to read. */
const usualSentence = 18;
const shortestSentence = 14;
const shortestTime = "2026-10-31 09:59Z".length;

interface Column {
  n: number;
  head: string;
  cells: readonly Cell[];
  isNumeric: boolean;
  /** Places that it takes as a whole; with each word whole; and with its ids shortened. */
  whole: number;
  wrapped: number;
  shortest: number;
}

/**
 * The lines of a table of at most `width` places. Sentences go on below, times lose their seconds, ids and addresses
 * their middle, and then columns are left out, which is said below. Numbers are always whole. Where no two columns fit,
 * each row becomes a block of lines, which leaves nothing out. Nothing is lost in a table that is
 * wide enough.
 */
export function layOut({ head, rows, spare = [], numeric = [] }: Grid, width: number): string[] {
  const count = Math.max(head.length, ...rows.map(({ length }) => length));
  const all = Array.from({ length: count }, (_, n) =>
    columnOf(
      n,
      head[n] ?? "",
      rows.map((row) => (row[n] === undefined ? "" : row[n])),
      numeric[n],
    ),
  );
  const kept = fitting(all, { width, spare });
  if (kept === null) return blocks(all, rows.length, width);
  const widths = widthsOf(kept, width);
  const left = all.filter((column) => !kept.includes(column));
  let isCut = left.length > 0;
  const linesOfRow = (texts: readonly (readonly string[])[]): string[] => {
    const height = Math.max(1, ...texts.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      kept
        .map(({ isNumeric }, n) => padded(texts[n]?.[line] ?? "", widths[n] ?? 0, isNumeric ? "right" : "left"))
        .join(gap)
        .trimEnd(),
    );
  };
  const cellLines = (cell: Cell, places: number): string[] => {
    const texts = linesOf(cell, places < 24);
    if (cell instanceof Date && places < 24) isCut = true;
    return texts.flatMap((text) =>
      brokenLines(text, places, (word) => {
        isCut = true;
        return [shortenedMiddle(word, places)];
      }),
    );
  };
  const heads = linesOfRow(kept.map((column, n) => brokenLines(column.head, widths[n] ?? 0)));
  const body = rows.flatMap((_, row) =>
    linesOfRow(kept.map(({ cells }, n) => cellLines(cells[row] ?? null, widths[n] ?? 0))),
  );
  return [
    ...(head.length === 0 ? [] : [...heads, widths.map((places) => "─".repeat(places)).join(gap)]),
    ...body,
    ...(isCut ? brokenLines(cutNote(left), width) : []),
  ];
}

const cutNote = (left: readonly Column[]): string =>
  left.length === 0
    ? "(shortened; --wide shows all)"
    : `(shortened, without ${left.map(({ head }) => head).join(", ")}; --wide shows all)`;

function columnOf(n: number, head: string, cells: readonly Cell[], isNumber: boolean | undefined): Column {
  const isNumeric = isNumber ?? (cells.some((cell) => typeof cell === "number") && cells.every(isNumberOrNone));
  const texts = cells.flatMap((cell) => linesOf(cell));
  const headWords = longest(head.split(" "));
  const whole = Math.max(displayWidth(head), longest(texts));
  const allWords = texts.flatMap((text) => text.split(" "));
  const words = longest(allWords);
  const isTime = cells.some((cell) => cell instanceof Date);
  const isSentence = texts.some((text) => text.includes(" "));
  const atLeast = (places: number): number => Math.max(headWords, Math.min(whole, places));
  if (isNumeric) return { n, head, cells, isNumeric, whole, wrapped: atLeast(words), shortest: atLeast(words) };
  if (isTime)
    return { n, head, cells, isNumeric, whole, wrapped: atLeast(shortestTime), shortest: atLeast(shortestTime) };
  const wrapped = atLeast(Math.max(words, isSentence ? usualSentence : 0));
  const amounts = longest(allWords.filter((word) => /^[\d.,+-]+$/.test(word)));
  const least = n === 0 ? shortestName : isSentence ? shortestSentence : shortestId;
  const shortest = Math.min(wrapped, atLeast(Math.max(amounts, least)));
  return { n, head, cells, isNumeric, whole, wrapped, shortest };
}

const isNumberOrNone = (cell: Cell): boolean => cell === null || cell === "" || typeof cell === "number";

const longest = (texts: readonly string[]): number => Math.max(0, ...texts.map(displayWidth));

const sumOf = (widths: readonly number[]): number =>
  widths.reduce((sum, each) => sum + each, gap.length * Math.max(0, widths.length - 1));

/** The columns that a table of this width shows; null where there would be a single one of several. */
function fitting(
  all: readonly Column[],
  { width, spare }: { width: number; spare: readonly string[] },
): readonly Column[] | null {
  const rank = ({ head, n }: Column): number =>
    spare.includes(head) ? spare.indexOf(head) - all.length - spare.length : -n;
  const order = all.slice(1).sort((a, b) => rank(a) - rank(b));
  let kept = all;
  for (;;) {
    if (sumOf(kept.map(({ shortest }) => shortest)) <= width) return kept;
    const [first] = order.splice(0, 1);
    if (first === undefined || (kept.length === 2 && all.length > 1)) return null;
    kept = kept.filter((column) => column !== first);
  }
}

/** First sentences go on below, those of the widest column first; then words are shortened, from the last column on. */
function widthsOf(columns: readonly Column[], width: number): number[] {
  const widths = columns.map(({ whole }) => Math.min(whole, width));
  for (let over = sumOf(widths) - width; over > 0; over--) {
    const wide = columns.map(({ wrapped }, n) => ((widths[n] ?? 0) > wrapped ? (widths[n] ?? 0) : 0));
    const most = Math.max(...wide);
    if (most === 0) break;
    widths[wide.indexOf(most)] = most - 1;
  }
  for (const [n, { shortest }] of [...columns.entries()].toReversed()) {
    const over = Math.max(0, sumOf(widths) - width);
    const room = Math.max(0, (widths[n] ?? 0) - shortest);
    widths[n] = (widths[n] ?? 0) - Math.min(over, room);
  }
  return widths;
}

/** Each row as lines "head: text", whole. */
function blocks(columns: readonly Column[], count: number, width: number): string[] {
  return Array.from({ length: count }, (_, row) => [
    ...(row === 0 ? [] : [""]),
    ...columns.flatMap(({ head, cells }) => {
      const texts = linesOf(cells[row] ?? null).filter((text) => text !== "");
      return texts.flatMap((text, n) => brokenLines(n === 0 && head !== "" ? `${head}: ${text}` : text, width));
    }),
  ]).flat();
}

function linesOf(cell: Cell, isShort = false): readonly string[] {
  if (cell === null) return ["-"];
  if (cell instanceof Date) return [isShort ? minuteOf(cell) : cell.toISOString()];
  return typeof cell === "object" ? cell.map(withoutControls) : [withoutControls(String(cell))];
}

const minuteOf = (time: Date): string => `${time.toISOString().slice(0, 16).replace("T", " ")}Z`;

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
