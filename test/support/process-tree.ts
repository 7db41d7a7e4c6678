import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { commandLine } from "../../src/platform/process-table.ts";

interface ProcessEntry {
  pid: number;
  parentPid: number;
  isZombie: boolean;
}

/** The live processes that a process started itself. */
export function childrenOf(pid: number): number[] {
  return processes()
    .filter((each) => each.parentPid === pid && !each.isZombie)
    .map((each) => each.pid);
}

/** The live processes whose command line holds this text. */
export function processesWith(text: string): number[] {
  return processes().flatMap(({ pid }) => (commandLine(pid)?.includes(text) ? [pid] : []));
}

/** Leaves out processes that another one started: a child has its parent's command line until it gets its own. */
export function withoutChildren(pids: readonly number[]): number[] {
  const children = new Set(pids.flatMap(childrenOf));
  return pids.filter((pid) => !children.has(pid));
}

/** Whether any process of a group is left, its leader or another. */
export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * Ends a process and its children as a power cut does: none of them can react to the end of another. The parent is
 * stopped first, so that it starts no further child.
 */
export function crash(pid: number): void {
  process.kill(pid, "SIGSTOP");
  for (const child of childrenOf(pid)) signalIfThere(child, "SIGKILL");
  process.kill(pid, "SIGKILL");
}

/** Stops a process and its children (SIGSTOP), or continues them (SIGCONT). */
export function signalTree(pid: number, signal: "SIGSTOP" | "SIGCONT"): void {
  for (const each of [pid, ...childrenOf(pid)]) signalIfThere(each, signal);
}

/** False when there is no such process (any more). A process group is its negative id. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

function processes(): ProcessEntry[] {
  if (process.platform !== "linux") return fromPs();
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // proc(5): the name in parentheses may hold anything; then come the state and the parent's id.
        const [state, parentPid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return [{ pid: Number(name), parentPid: Number(parentPid), isZombie: state === "Z" }];
      } catch {
        return [];
      }
    });
}

function fromPs(): ProcessEntry[] {
  const out = execFileSync("ps", ["-A", "-o", "pid=,ppid=,state="], { encoding: "utf8" });
  return out
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .map(([pid, parentPid, state = ""]) => ({
      pid: Number(pid),
      parentPid: Number(parentPid),
      isZombie: state.startsWith("Z"),
    }));
}
