import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../test/support/free-port.ts";
import { benchSecret } from "../load/signed-request.ts";
import { compiled } from "./compile.ts";
import type { CpuSet } from "./pinning.ts";
import { type BenchProcess, startProcess } from "./processes.ts";
import type { DataPlace } from "./stand.ts";

export interface Placed {
  directory: string;
  cpus: CpuSet;
  profile: boolean;
  /** Name of its log and profile, if several of a kind run. */
  name?: string;
  /** Another build of the program. */
  file?: string | undefined;
}

export interface RunningServer {
  process: BenchProcess;
  port: number;
}

const startWithinMs = 120_000;

/** The same as in the compose file. */
export const nodeArgs = ["--max-old-space-size=512"];

/** Starts `tallyhook receiver` with its defaults. */
export async function startReceiver(placed: Placed, place: DataPlace): Promise<RunningServer> {
  const port = await freePort();
  const child = startProcess({
    name: "receiver",
    ...placed,
    file: compiled(new URL("../servers/tallyhook.ts", import.meta.url)),
    args: ["receiver"],
    nodeArgs,
    env: { ...(await environment(placed, place)), PORT: String(port) },
  });
  await untilAnswers(child, port, "/readyz");
  return { process: child, port };
}

/** Starts the dashboard on a clock that begins at this time. */
export async function startDashboard(placed: Placed, place: DataPlace, beginsAt: Date): Promise<RunningServer> {
  const port = await freePort();
  const child = startProcess({
    name: "dashboard",
    ...placed,
    file: compiled(new URL("../servers/dashboard.ts", import.meta.url)),
    args: [String(port), beginsAt.toISOString()],
    nodeArgs,
    env: await environment(placed, place),
  });
  await untilAnswers(child, port, "/sign-in");
  return { process: child, port };
}

/** Starts `tallyhook worker` with its defaults. A benchmark's events need no refetch. */
export async function startWorker(
  placed: Placed,
  place: DataPlace,
  env: Readonly<Record<string, string>> = {},
): Promise<BenchProcess> {
  return startProcess({
    name: "worker",
    ...placed,
    file: placed.file ?? compiled(new URL("../servers/tallyhook.ts", import.meta.url)),
    args: ["worker"],
    nodeArgs,
    env: { ...(await environment(placed, place)), ...env },
  });
}

/** Starts a server to compare with. */
export async function startOtherServer(
  placed: Placed,
  server: {
    name: string;
    source: URL;
    args?: string[];
    nodeArgs?: readonly string[];
    env?: Readonly<Record<string, string>>;
  },
): Promise<RunningServer> {
  const port = await freePort();
  const child = startProcess({
    ...placed,
    name: server.name,
    file: compiled(server.source),
    args: [String(port), ...(server.args ?? [])],
    nodeArgs: server.nodeArgs ?? [],
    env: server.env ?? {},
  });
  await untilAnswers(child, port, "/");
  return { process: child, port };
}

async function environment(
  { directory }: Placed,
  { databaseUrl, redisUrl }: DataPlace,
): Promise<Record<string, string>> {
  return {
    DATABASE_URL: databaseUrl,
    ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
    HOST: "127.0.0.1",
    ADMIN_PORT: String(await freePort()),
    SVC_WEBHOOK_SECRETS: benchSecret,
    TALLYHOOK_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
    TALLYHOOK_DATA_DIR: directory,
  };
}

/**
 * Accepts any answer but 503, since the compared servers support POST only. Stops the process if none comes in time,
 * since no other code knows of it yet.
 */
export async function untilAnswers(
  { died, stop }: BenchProcess,
  port: number,
  path: string,
  withinMs = startWithinMs,
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  const attempt = async (): Promise<boolean> => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        signal: AbortSignal.timeout(2_000),
      });
      await answer.body?.cancel();
      return answer.status !== 503;
    } catch {
      return false;
    }
  };
  try {
    while (!(await Promise.race([attempt(), died]))) {
      if (performance.now() > deadlineMs) throw new Error(`port ${port} does not answer`);
      await sleep(50);
    }
  } catch (error) {
    await stop();
    throw error;
  }
}
