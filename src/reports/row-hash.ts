import { createHash } from "node:crypto";
import type { Column, Row } from "./report.ts";

export interface RowHash {
  add(rows: readonly Row[]): void;
  /** Ends it. */
  digest(): { rows: number; sha256: string };
}

/** SHA-256 of the column names and of each row as a JSON array, a line each: the same for every format. */
export function createRowHash(columns: readonly Column[]): RowHash {
  const hash = createHash("sha256");
  let count = 0;
  hash.update(`${JSON.stringify(columns.map(({ name }) => name))}\n`);
  return {
    add(rows) {
      count += rows.length;
      hash.update(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    },
    digest: () => ({ rows: count, sha256: hash.digest("hex") }),
  };
}
