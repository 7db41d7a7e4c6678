import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

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

/** A process by name, as it may be kept where others read it. */
export interface NamedProcess {
  host: string;
  pid: number;
  /** For `hasEnded`; null where processes cannot be told apart. */
  identity: string | null;
}

export function thisProcess(): NamedProcess {
  const { pid } = process;
  const [space, started] = [idSpace(), processIdentity(pid)];
  const identity = space === null || started === null ? null : `${space} ${started}`;
  return { host: hostname(), pid, identity };
}

/** Whether a process has ended. Null where that is not visible from here: on another machine, in another container. */
export function hasEnded({ pid, identity }: Pick<NamedProcess, "pid" | "identity">): boolean | null {
  const space = idSpace();
  if (space === null || identity === null || !identity.startsWith(`${space} `)) return null;
  return `${space} ${processIdentity(pid) ?? ""}` !== identity;
}

/**
 * Identifies the space in which a process id has the same meaning as here: since this boot, in this namespace of ids (a
 * container has its own), for this user (others' processes may be hidden). Null where that is unknown.
 */
function idSpace(): string | null {
  const boot = readProc("sys/kernel/random/boot_id")?.trim();
  if (boot === undefined) return null;
  try {
    return `${boot} ${readlinkSync("/proc/self/ns/pid")} ${process.getuid?.()}`;
  } catch {
    return null;
  }
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
