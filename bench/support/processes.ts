import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type CpuSet, pinnedCommand } from "./pinning.ts";

export interface ProcessOptions {
  name: string;
  file: string;
  args?: readonly string[];
  /** Arguments of node itself. */
  nodeArgs?: readonly string[];
  env?: Readonly<Record<string, string>>;
  cpus: CpuSet;
  /** The folder of its output, `<name>.log`, and of its profile. */
  directory: string;
  /** True: writes a CPU profile when it ends. */
  profile?: boolean;
  ipc?: boolean;
}

export interface BenchProcess {
  readonly name: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** Rejects when the process ends before `stop` was called. */
  readonly died: Promise<never>;
  /** Sends SIGTERM, then SIGKILL if the process does not end. */
  stop(): Promise<void>;
}

const stopWithinMs = 20_000;

const running = new Set<ChildProcess>();

/** Kills all running processes immediately, for an interrupted benchmark. */
export function killProcesses(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Starts one program of a benchmark. Of our own environment it gets only the path. */
export function startProcess(options: ProcessOptions): BenchProcess {
  const { name, file, directory, cpus } = options;
  const logFile = join(directory, `${name}.log`);
  const profiling = ["--cpu-prof", `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${name}.cpuprofile`];
  const [command, ...args] = pinnedCommand(cpus, [
    process.execPath,
    "--enable-source-maps",
    ...(options.nodeArgs ?? []),
    ...(options.profile === true ? profiling : []),
    file,
    ...(options.args ?? []),
  ]);
  const log = openSync(logFile, "a");
  const child = spawn(command ?? "", args, {
    env: { PATH: process.env["PATH"], NODE_ENV: "production", ...options.env },
    stdio: ["ignore", log, log, ...(options.ipc === true ? (["ipc"] as const) : [])],
  });
  closeSync(log);
  let isStopping = false;
  const exited = new Promise<void>((resolve) => {
    running.add(child);
    child.once("exit", () => {
      running.delete(child);
      resolve();
    });
    child.once("error", () => resolve());
  });
  const died = exited.then(() => {
    if (isStopping) return new Promise<never>(() => {});
    throw new Error(`${name} ended early:\n${readFileSync(logFile, "utf8").slice(-2_000)}`);
  });
  died.catch(() => {});
  return {
    name,
    pid: child.pid ?? 0,
    child,
    died,
    async stop() {
      isStopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** The next message of a process with `ipc`. */
export async function nextMessage<T>({ child, died }: BenchProcess): Promise<T> {
  const [message] = (await Promise.race([once(child, "message"), died])) as [T];
  return message;
}
