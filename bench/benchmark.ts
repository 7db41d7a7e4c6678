import type { Cell } from "./support/format.ts";
import type { Stand } from "./support/stand.ts";

export interface BenchOptions {
  /** Of one round. */
  seconds: number;
  rounds: number;
  /** Length of the memory benchmark; null: as long as one round of the others, but 20 s at least. */
  minutes: number | null;
  profile: boolean;
  /** Waits for a quiet machine, and repeats rounds that were disturbed. */
  patient: boolean;
}

export interface Target {
  what: string;
  /** In words, such as "≥ 5,000/s". */
  wanted: string;
  measured: string;
  reached: boolean;
}

export interface BenchResult {
  /** One object a line of the table, all with the same keys. */
  rows: Record<string, Cell>[];
  targets: Target[];
  notes: string[];
}

/** One thing that is measured; `npm run bench -- <name>` runs it alone. */
export interface Benchmark {
  name: string;
  title: string;
  run(stand: Stand, options: BenchOptions, say: (line: string) => void): Promise<BenchResult>;
}
