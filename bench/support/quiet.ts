import { setTimeout as sleep } from "node:timers/promises";
import { type CpuUse, meterCpu } from "./cpu-meter.ts";

/** A round is worthless if other programs use more CPUs than this. */
const maxElsewhere = 0.15;
const lookMs = 500;
const waitAtMostMs = 300_000;
const maxTries = 20;

/**
 * Measures once. If `patient`, waits until the machine is quiet and repeats a disturbed measurement. After `maxTries`
 * the least disturbed one counts. Without /proc, disturbance is unknown and the first one counts.
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

/** The measurement during which other programs used the least CPU. */
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
