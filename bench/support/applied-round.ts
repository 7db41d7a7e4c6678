import { type CpuUse, meterCpu } from "./cpu-meter.ts";
import { checkStored } from "./stored-events.ts";
import { type System, untilApplied, untilRead } from "./system.ts";

export interface AppliedRound {
  /** Deliveries that were answered 200. */
  accepted: number;
  acceptedPerSecond: number;
  appliedPerSecond: number;
  cpu: CpuUse;
  /** Events for each second that the CPU was metered. */
  meteredPerSecond: number;
}

/** More than any program here applies in a second. The requests are made before they are sent, which takes its time. */
export const mostAppliedPerSecond = 10_000;

/** A load that the generator sends as fast as the answers come. Ends early, rightly timed, if the events run out. */
export const closedLoop = (seconds: number, mostPerSecond: number) =>
  ({ kind: "closed", seconds, maxEvents: Math.ceil(seconds * mostPerSecond) }) as const;

/** One closed loop, from the first request until no event waits. Throws if events were lost, doubled or not applied. */
export async function appliedRound({ generator, port, client, pids }: System, seconds: number): Promise<AppliedRound> {
  let stopMeter: () => CpuUse = () => ({});
  let meterStartMs = 0;
  const report = await generator.run({ port, plan: closedLoop(seconds, mostAppliedPerSecond) }, () => {
    stopMeter = meterCpu(pids);
    meterStartMs = performance.now();
  });
  await untilApplied(client);
  const totalSeconds = (Date.now() - report.startedAtMs) / 1_000;
  await untilRead(client);
  const cpu = stopMeter();
  const meteredSeconds = (performance.now() - meterStartMs) / 1_000;
  await checkStored(client, generator.sent, { isApplied: true });
  return {
    accepted: report.accepted,
    acceptedPerSecond: report.accepted / report.seconds,
    appliedPerSecond: report.accepted / totalSeconds,
    cpu,
    meteredPerSecond: report.accepted / meteredSeconds,
  };
}
