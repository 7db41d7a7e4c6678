import { readFileSync } from "node:fs";
import { processTree, readStat, ticksPerSecond } from "./pinning.ts";

/** Average number of CPUs that each program used. `elsewhere` is other programs and stolen time. */
export type CpuUse = Record<string, number>;

/** Starts measuring. The returned function gives the use since then. Empty without /proc. */
export function meterCpu(programs: Readonly<Record<string, number>>): () => CpuUse {
  if (process.platform !== "linux") return () => ({});
  const all = { ...programs, runner: process.pid };
  const before = readAll(all);
  const startMs = performance.now();
  return () => {
    const after = readAll(all);
    const ticks = ((performance.now() - startMs) / 1_000) * ticksPerSecond;
    const use: CpuUse = {};
    let own = 0;
    for (const name of Object.keys(all)) {
      const spent = ((after.byName[name] ?? 0) - (before.byName[name] ?? 0)) / ticks;
      use[name] = spent;
      own += spent;
    }
    use["elsewhere"] = Math.max(0, (after.busy - before.busy) / ticks - own);
    return use;
  };
}

/** The same as CPU seconds of each program, children included, without the rest of the machine. */
export function meterSeconds(programs: Readonly<Record<string, number>>): () => Record<string, number> {
  if (process.platform !== "linux") return () => ({});
  const before = readAll(programs).byName;
  return () => {
    const after = readAll(programs).byName;
    return Object.fromEntries(
      Object.keys(programs).map((name) => [name, ((after[name] ?? 0) - (before[name] ?? 0)) / ticksPerSecond]),
    );
  };
}

/** CPU seconds of the children of this process that have ended, and of theirs. */
export function endedChildrenSeconds(): number {
  const fields = readStat(process.pid)?.slice(13, 15) ?? [];
  return fields.reduce((sum, field) => sum + Number(field), 0) / ticksPerSecond;
}

function readAll(programs: Readonly<Record<string, number>>) {
  const byName = Object.fromEntries(Object.entries(programs).map(([name, pid]) => [name, treeTicks(name, pid)]));
  return { byName, busy: busyTicks() };
}

/** User and system time of a program and its children. Children that have ended are counted at their parent. */
function treeTicks(name: string, pid: number): number {
  const tree = name === "runner" ? [pid] : processTree(pid);
  return tree.reduce((sum, each) => {
    const fields = readStat(each)?.slice(11, name === "runner" ? 13 : 15) ?? [];
    return sum + fields.reduce((ticks, field) => ticks + Number(field), 0);
  }, 0);
}

/** Busy time of all CPUs: everything except idle and waiting for disks. */
function busyTicks(): number {
  const [first = ""] = readFileSync("/proc/stat", "utf8").split("\n", 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = first.split(/\s+/).slice(1).map(Number);
  return user + nice + system + irq + softIrq + steal;
}
