import type { CpuUse } from "./cpu-meter.ts";

export type Cell = string | number;

/** Programs with what they took, in CPUs: `server 0.98, postgres 0.41`. */
export const describeCpu = (use: CpuUse): string =>
  Object.entries(use)
    .filter(([, cpus]) => cpus >= 0.01)
    .map(([name, cpus]) => `${name} ${cpus.toFixed(2)}`)
    .join(", ");

/** A table of plain text; numbers to the right. */
export function formatTable(rows: readonly Record<string, Cell>[]): string {
  const keys = Object.keys(rows[0] ?? {});
  const text = (cell: Cell | undefined) =>
    typeof cell === "number" ? cell.toLocaleString("en") : (cell ?? "");
  const widths = keys.map((key) =>
    Math.max(key.length, ...rows.map((row) => text(row[key]).length)),
  );
  const line = (cells: string[], isNumber: (n: number) => boolean) =>
    cells
      .map((cell, n) => (isNumber(n) ? cell.padStart(widths[n] ?? 0) : cell.padEnd(widths[n] ?? 0)))
      .join("  ")
      .trimEnd();
  const isNumeric = keys.map((key) => rows.every((row) => /^[\d.,]+$/.test(text(row[key]))));
  const right = (n: number) => isNumeric[n] ?? false;
  return [
    line(keys, right),
    line(
      widths.map((width) => "-".repeat(width)),
      right,
    ),
    ...rows.map((row) =>
      line(
        keys.map((key) => text(row[key])),
        right,
      ),
    ),
  ].join("\n");
}
