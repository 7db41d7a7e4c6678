import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** CPUs in taskset's list format. */
export type CpuSet = string;

const cpus = availableParallelism();
const canPin = cpus >= 2 && spawnSync("taskset", ["--version"]).status === 0;

/** Placement of compared programs: the server alone on one CPU, the load generator and PostgreSQL on another. */
export const placement: { server: CpuSet; others: CpuSet; all: CpuSet } = {
  server: "0",
  others: "1",
  all: `0-${cpus - 1}`,
};

export const pinningNote = canPin
  ? "taskset: the server on CPU 0; the load generator, PostgreSQL and Redis on CPU 1"
  : "nothing is pinned (no taskset, or one CPU only)";

export function pinnedCommand(set: CpuSet, command: readonly string[]): string[] {
  return canPin ? ["taskset", "-c", set, ...command] : [...command];
}

/** Moves a running program and its children. Processes that they start later inherit the CPUs. */
export function pinTree(pid: number, set: CpuSet): void {
  if (!canPin) return;
  for (const each of processTree(pid)) {
    // A process that has ended by now is skipped.
    spawnSync("taskset", ["-a", "-p", "-c", set, String(each)], { stdio: "ignore" });
  }
}

/** A process and its children, if this system lists them. */
export function processTree(pid: number): number[] {
  if (process.platform !== "linux") return [pid];
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : null;
    if (stat !== null) parents.set(Number(name), Number(stat[1]));
  }
  const tree = new Set([pid]);
  for (let size = 0; size < tree.size;) {
    size = tree.size;
    for (const [child, parent] of parents) if (tree.has(parent)) tree.add(child);
  }
  return [...tree];
}

/** The fields of /proc/<pid>/stat after the name: state, parent, …; null if the process has ended. */
export function readStat(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** Clock ticks a second, the unit of times in /proc. */
export const ticksPerSecond =
  process.platform === "linux" ? Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" })) : 100;
