/** A linear axis from zero, or from below it, to a round number. */
export interface Scale {
  min: number;
  max: number;
  ticks: readonly number[];
}

/** Ticks at 1, 2, 2.5 or 5 times a power of ten, about `wanted` of them, that hold all values and zero. Pure. */
export function scaleFor(values: readonly number[], wanted = 4): Scale {
  const low = values.reduce((least, value) => Math.min(least, value), 0);
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  if (low === high) return { min: 0, max: 1, ticks: [0] };
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  const ticks = Array.from({ length: last - first + 1 }, (_, n) => (first + n) * step);
  return { min: first * step, max: last * step, ticks };
}

/** A coordinate of a drawing: a hundredth is finer than any screen. Pure. */
export const rounded = (coordinate: number): number => Math.round(coordinate * 100) / 100;
