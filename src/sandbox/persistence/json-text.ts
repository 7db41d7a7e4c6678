/** Anything that JSON can say, and rows that are shown one by one as the text is made. */
export type Json = unknown;

interface Rows {
  rows: readonly unknown[];
  show: (row: never) => unknown;
}

const rowsPerPiece = 500;

/**
 * JSON in pieces of moderate size, since a large state is longer than a string can be. Between two pieces other work
 * of the process gets its turn. Objects nest; arrays are leaves but for their length.
 */
export function* jsonPieces(value: Json): Generator<string> {
  if (isRows(value)) yield* arrayPieces(value.rows, value.show);
  else if (Array.isArray(value)) yield* arrayPieces(value, (row: unknown) => row);
  else if (typeof value === "object" && value !== null) yield* objectPieces(value);
  else yield JSON.stringify(value) ?? "null";
}

function* objectPieces(value: object): Generator<string> {
  let separator = "{";
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* jsonPieces(inner);
    separator = ",";
  }
  yield separator === "{" ? "{}" : "}";
}

function* arrayPieces(rows: readonly unknown[], show: (row: never) => unknown): Generator<string> {
  yield "[";
  for (let from = 0; from < rows.length; from += rowsPerPiece) {
    const shown = rows
      .slice(from, from + rowsPerPiece)
      .map((row) => JSON.stringify(show(row as never)));
    yield (from === 0 ? "" : ",") + shown.join(",");
  }
  yield "]";
}

function isRows(value: unknown): value is Rows {
  return typeof value === "object" && value !== null && "rows" in value && "show" in value;
}
