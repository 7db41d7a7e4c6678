import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The command line of a live process; null when no process has this id, or only a zombie. */
export function commandLine(pid: number): string | null {
  if (process.platform !== "linux") return ps(pid, "command");
  const line = readProc(`${pid}/cmdline`);
  return line === null || line === "" ? null : line.replaceAll("\0", " ").trimEnd();
}

/**
 * Distinguishes a process from a later one with the same id: its start time, and the boot it belongs to. Null when
 * there is no such process.
 */
export function processIdentity(pid: number): string | null {
  if (process.platform !== "linux") return ps(pid, "lstart");
  const stat = readProc(`${pid}/stat`);
  if (stat === null) return null;
  // proc(5): the name in parentheses may hold any character; state is field 3, the start time field 22.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startedAt] = [fields[0], fields[19]];
  if (state === "Z" || startedAt === undefined) return null;
  return `${readProc("sys/kernel/random/boot_id")?.trim() ?? ""}/${startedAt}`;
}

function readProc(path: string): string | null {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return null;
  }
}

function ps(pid: number, column: string): string | null {
  try {
    const out = execFileSync("ps", ["-ww", "-o", `${column}=`, "-p", String(pid)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return out.trim() || null;
  } catch {
    return null;
  }
}
