import { counted } from "./counted.ts";

const units = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/** A length of time for people, in its two largest units: `4 days 3 hours`, `35 minutes`, `less than a minute`. Pure. */
export function durationText(ms: number): string {
  let seconds = Math.max(0, Math.floor(ms / 1_000));
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "less than a minute";
  const parts: string[] = [];
  for (const [unit, length] of units.slice(first, first + 2)) {
    const count = Math.floor(seconds / length);
    seconds -= count * length;
    if (count > 0) parts.push(counted(count, unit));
  }
  return parts.join(" ");
}
