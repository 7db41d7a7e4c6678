import { median } from "./statistics.ts";

export interface Cost {
  /** CPU time of each program, in µs. */
  cpuMicros: Readonly<Record<string, number>>;
  walBytes: number;
}

export type Phase = "store" | "apply";
export type Moment = "after a checkpoint" | "steady";

/** The same events on both databases, one after the other. */
export interface GrowthRound {
  phase: Phase;
  moment: Moment;
  empty: Cost;
  grown: Cost;
}

const matching = (rounds: readonly GrowthRound[], phase: Phase, moment: Moment): GrowthRound[] =>
  rounds.filter((round) => round.phase === phase && round.moment === moment);

const total = ({ cpuMicros }: Cost): number => Object.values(cpuMicros).reduce((sum, micros) => sum + micros, 0);

/** Medians over the rounds, program by program. */
export function costsOf(rounds: readonly GrowthRound[], phase: Phase, moment: Moment): { empty: Cost; grown: Cost } {
  const own = matching(rounds, phase, moment);
  const middle = (costs: readonly Cost[]): Cost => ({
    cpuMicros: Object.fromEntries(
      Object.keys(costs[0]?.cpuMicros ?? {}).map((program) => [
        program,
        median(costs.map(({ cpuMicros }) => cpuMicros[program] ?? Number.NaN)),
      ]),
    ),
    walBytes: median(costs.map(({ walBytes }) => walBytes)),
  });
  return {
    empty: middle(own.map(({ empty }) => empty)),
    grown: middle(own.map(({ grown }) => grown)),
  };
}

/**
 * The factor by which an event costs more on the grown database: the median of the rounds' ratios, since both halves of
 * a round met the same minute of the machine. `cost` is the CPU time of all programs together.
 */
export function medianRatio(
  rounds: readonly GrowthRound[],
  phase: Phase,
  moment: Moment,
): { cost: number; wal: number } {
  const own = matching(rounds, phase, moment);
  return {
    cost: median(own.map(({ empty, grown }) => total(grown) / total(empty))),
    wal: median(own.map(({ empty, grown }) => grown.walBytes / empty.walBytes)),
  };
}
