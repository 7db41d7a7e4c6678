import type { Html } from "../../../platform/html.ts";

interface Part {
  count: number;
  minor: bigint;
}

/** Outcomes of the renewals of one currency that were first declined in a month. */
export interface CurrencyFunnel {
  currency: string | null;
  declined: Part;
  /** Counted by the attempt that was paid. */
  recoveredAt: readonly [second: number, third: number, fourth: number, later: number];
  recovered: Part;
  inProgress: Part;
  lost: Part;
}

/** Outcomes of the renewals that were first declined in a month. */
export interface Funnel {
  currencies: readonly CurrencyFunnel[];
  /** Drawings, with a description of each. */
  figures: Html | null;
}

/** Renewals that were first declined in a week, in all currencies, by what became of them. */
export interface WeekOfDeclines {
  /** `2026-11-16`. */
  monday: string;
  recovered: number;
  inProgress: number;
  lost: number;
}
