/** The meaning of a bar or a part of a column. Each tone has its own colour and fill. */
export type Tone = "base" | "gain" | "loss" | "other";

/** Bars along a common axis, one below the other: shares of a whole, or the steps from one balance to the next. */
export interface BarFigure {
  kind: "bars";
  title: string;
  /** A sentence that describes the figure for readers who cannot see it. */
  describes: string;
  bars: readonly Bar[];
  /** A line across all bars. */
  threshold?: Threshold;
}

export interface Threshold {
  value: number;
  label: string;
}

export interface Bar {
  label: string;
  /** Where the bar begins and ends on the axis. */
  from: number;
  to: number;
  /** The exact value, as printed next to the bar. */
  value: string;
  tone: Tone;
}

/** Columns side by side, such as consecutive days or months. */
export interface ColumnFigure {
  kind: "columns";
  title: string;
  describes: string;
  /** Formats the ticks of the axis. */
  axis: (value: number) => string;
  columns: readonly Column[];
  /** Many columns, of which few are labelled, fit into half a page; left out: only a few columns do. */
  isHalf?: true;
  /** Lines across all columns. */
  thresholds: readonly Threshold[];
  /** The meaning of each tone; empty if there is only one. */
  legend: readonly { tone: Tone; label: string }[];
}

export interface Column {
  /** Null where the label of a column before it stands for it: then all other labels are shown. */
  label: string | null;
  /** Stacked from the bottom. */
  parts: readonly { value: number; tone: Tone }[];
  /** Printed above the column. */
  note: string | null;
  /** Printed below the column where a reader should check something. */
  mark: { sign: string; meaning: string } | null;
}

export type Figure = BarFigure | ColumnFigure;
