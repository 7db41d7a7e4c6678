import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { type Service, durationMs } from "./compose-file.ts";

/** Hung, however busy the machine is. */
const HEALTHY_WITHIN_MS = 120_000;
const CHECK_EVERY_MS = 100;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A service of the compose file as a plain process: its command, its environment, its health check. */
export interface Container {
  readonly exited: Promise<Exit>;
  /** What it printed so far, both streams. */
  output(): string;
  /** Resolves once the health check of the file passes; throws when the process ends or takes too long. */
  healthy(): Promise<void>;
  /** As `docker compose stop`: SIGTERM, and SIGKILL after the service's grace period. */
  stop(): Promise<Exit>;
}

/**
 * @param directory stands for the working directory of the image
 * @param environment the whole of it: a container inherits none
 */
export function runContainer(
  service: Pick<Service, "command" | "healthcheck" | "stop_grace_period">,
  directory: string,
  environment: Readonly<Record<string, string>>,
): Container {
  const chunks: string[] = [];
  const child = start(service.command ?? [], directory, environment, chunks);
  const exited = once(child, "exit").then(([code, signal]): Exit => ({
    code: code as Exit["code"],
    signal: signal as Exit["signal"],
  }));
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const output = (): string => chunks.join("");

  const checkHealth = async (): Promise<boolean> => {
    const [kind, ...command] = service.healthcheck?.test ?? [];
    if (kind !== "CMD") throw new Error("the service has no health check of the form CMD");
    const [code] = (await once(start(command, directory, environment, []), "exit")) as [number];
    return code === 0;
  };

  return {
    exited,
    output,
    healthy: async () => {
      const deadline = performance.now() + HEALTHY_WITHIN_MS;
      while (isRunning() && performance.now() < deadline) {
        if (await checkHealth()) return;
        await delay(CHECK_EVERY_MS);
      }
      throw new Error(`not healthy (${isRunning() ? "still running" : "ended"}):\n${output()}`);
    },
    stop: async () => {
      child.kill("SIGTERM");
      const grace = setTimeout(() => child.kill("SIGKILL"), durationMs(service.stop_grace_period ?? "10s"));
      const exit = await exited;
      clearTimeout(grace);
      return exit;
    },
  };
}

function start(
  [program = "", ...args]: readonly string[],
  directory: string,
  environment: Readonly<Record<string, string>>,
  chunks: string[],
): ChildProcess {
  const child = spawn(program === "node" ? process.execPath : program, args, {
    cwd: directory,
    env: { PATH: process.env["PATH"], ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => chunks.push(chunk));
  }
  const killWithTests = (): void => void child.kill("SIGKILL");
  process.once("exit", killWithTests);
  child.once("exit", () => process.removeListener("exit", killWithTests));
  return child;
}
