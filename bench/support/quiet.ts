import { setTimeout as sleep } from "node:timers/promises";
import { type CpuUse, meterCpu } from "./cpu-meter.ts";

/** More than this many CPUs taken by programs that are not ours make a round worthless. */
const maxElsewhere = 0.15;
const lookMs = 500;
const waitAtMostMs = 300_000;
const maxTries = 20;

/**
 * Measures once; if `patient`, only when the rest of the machine is quiet, and again when it was not meanwhile.
 * After `maxTries` the least disturbed of them counts. Without /proc nobody knows, and the first one counts.
 */
export async function whenQuiet<T extends { cpu: CpuUse }>(
  { patient }: { patient: boolean },
  measure: () => Promise<T>,
): Promise<T> {
  let best: T | undefined;
  for (let tries = 0; tries < maxTries; tries++) {
    if (patient) await untilQuiet();
    const result = await measure();
    best = best === undefined ? result : leastDisturbed([best, result]);
    if (!patient || disturbance(best) <= maxElsewhere) break;
  }
  if (best === undefined) throw new Error("nothing was measured");
  return best;
}

/** Of several measurements the one during which other programs took least. */
export function leastDisturbed<T extends { cpu: CpuUse }>(measured: readonly T[]): T {
  return measured.reduce((best, each) => (disturbance(each) < disturbance(best) ? each : best));
}

const disturbance = ({ cpu }: { cpu: CpuUse }): number => cpu["elsewhere"] ?? 0;

async function untilQuiet(): Promise<void> {
  const deadlineMs = performance.now() + waitAtMostMs;
  for (let quiet = 0; quiet < 2 && performance.now() < deadlineMs;) {
    const stopMeter = meterCpu({});
    await sleep(lookMs);
    quiet = disturbance({ cpu: stopMeter() }) <= maxElsewhere ? quiet + 1 : 0;
  }
}
