import { readFileSync } from "node:fs";

export interface MemorySample {
  seconds: number;
  megabytes: number;
}

/** Samples the memory of programs every second until the returned function is called. Empty without /proc. */
export function sampleMemory(programs: Readonly<Record<string, number>>): () => Record<string, MemorySample[]> {
  const startMs = performance.now();
  const samples: Record<string, MemorySample[]> = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
  const sample = () => {
    for (const [name, pid] of Object.entries(programs)) {
      const megabytes = residentMegabytes(pid);
      const seconds = (performance.now() - startMs) / 1_000;
      if (megabytes !== null) samples[name]?.push({ seconds, megabytes });
    }
  };
  sample();
  const timer = setInterval(sample, 1_000);
  return () => {
    clearInterval(timer);
    sample();
    return samples;
  };
}

/** Resident memory of a program now; null without /proc. */
export function residentMegabytes(pid: number): number | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) / 1_024;
  } catch {
    return null;
  }
}
