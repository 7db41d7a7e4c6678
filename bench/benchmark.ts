import type { Mix } from "./load/protocol.ts";
import type { Cell } from "./support/format.ts";
import type { Stand } from "./support/stand.ts";

export interface BenchOptions {
  /** Length of one round. */
  seconds: number;
  rounds: number;
  /** Length of the memory benchmark. Null: as long as one round of the others, at least 20 s. */
  minutes: number | null;
  /** The kind of events. Null: the benchmark's own. */
  mix: Mix | null;
  /** Number of orders in the grown database. */
  orders: number;
  /** On the grown database: only reports and reconciliation. */
  readsOnly: boolean;
  profile: boolean;
  /** Settings of PostgreSQL in addition to the embedded server's. */
  settings: Readonly<Record<string, string>>;
  /** Waits until the machine is quiet, and repeats disturbed rounds. */
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
  /** One object for each line of the table, all with the same keys. */
  rows: Record<string, Cell>[];
  targets: Target[];
  notes: string[];
}

/** One benchmark; `npm run bench -- <name>` runs it alone. */
export interface Benchmark {
  name: string;
  title: string;
  /** It runs when it is named, not when all are. */
  isOnlyByName?: true;
  run(stand: Stand, options: BenchOptions, say: (line: string) => void): Promise<BenchResult>;
}
