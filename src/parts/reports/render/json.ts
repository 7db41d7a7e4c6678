import type { Cell, Column, Row } from "../base/report.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";

/**
 * Renders one object: `columns`, `rows` (one a line) and `about`. Money is minor units as text, since most readers lose
 * digits of JSON numbers above 2^53. Counts are numbers.
 */
export function renderJson({ columns, write }: RenderingInput): Rendering {
  let before = `{"columns":${JSON.stringify(columns.map(({ name, kind }) => ({ name, kind })))},"rows":[`;
  return {
    async rows(rows) {
      const lines = rows.map((row) => JSON.stringify(toObject(columns, row))).join(",\n");
      await write(`${before}\n${lines}`);
      before = ",";
    },
    async end(about) {
      const start = before === "," ? "" : before;
      await write(`${start}\n],"about":${JSON.stringify(about)}}\n`);
    },
  };
}

function toObject(columns: readonly Column[], row: Row): Record<string, unknown> {
  return Object.fromEntries(columns.map(({ name, kind }, n) => [name, toJson(row[n] ?? null, kind)]));
}

const toJson = (cell: Cell, kind: Column["kind"]): string | number | null =>
  cell !== null && (kind === "count" || kind === "percent" || kind === "number") ? Number(cell) : cell;
