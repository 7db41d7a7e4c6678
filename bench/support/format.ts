import { availableParallelism } from "node:os";
import type { CpuUse } from "./cpu-meter.ts";

export type Cell = string | number;

/** Programs with their CPU use: `server 0.98, postgres 0.41`. */
export const describeCpu = (use: CpuUse): string =>
  Object.entries(use)
    .filter(([, cpus]) => cpus >= 0.01)
    .map(([name, cpus]) => `${name} ${cpus.toFixed(2)}`)
    .join(", ");

/**
 * CPU time of each program for one event and of all of them, in µs, and how many events a second the machine's CPUs could handle at that
 * cost. Varies less than a rate when other programs are running.
 */
export function describeCost(use: CpuUse, eventsPerSecond: number): { costs: string; micros: number; bound: number } {
  const own = Object.entries(use).filter(([name]) => name !== "elsewhere" && name !== "runner");
  const micros = (cpus: number) => (cpus * 1e6) / eventsPerSecond;
  const sum = own.reduce((total, [, cpus]) => total + cpus, 0);
  const costs = own.map(([name, cpus]) => `${name} ${Math.round(micros(cpus))}`).join(", ");
  const bound = Math.round((availableParallelism() * 1e6) / micros(sum));
  return { costs, micros: micros(sum), bound };
}

/** CPU times in µs: `postgres 196, worker 151`. */
export const describeMicros = (micros: Readonly<Record<string, number>>): string =>
  Object.entries(micros)
    .map(([name, each]) => `${name} ${Math.round(each)}`)
    .join(", ");

/** A plain text table, with numbers aligned to the right. */
export function formatTable(rows: readonly Record<string, Cell>[]): string {
  const keys = Object.keys(rows[0] ?? {});
  const text = (cell: Cell | undefined) => (typeof cell === "number" ? cell.toLocaleString("en") : (cell ?? ""));
  const widths = keys.map((key) => Math.max(key.length, ...rows.map((row) => text(row[key]).length)));
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
