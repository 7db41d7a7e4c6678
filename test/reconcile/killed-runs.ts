import { spawn } from "node:child_process";
import { once } from "node:events";
import { inject } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import type { Random } from "../../src/platform/random.ts";
import type { HostileService } from "./hostile-service.ts";

export interface StartedRun {
  exited: Promise<{ code: number | null; out: string; err: string }>;
  /** What was written to standard error so far, as often as some was. */
  onError(listen: (err: string) => void): void;
  end(signal: NodeJS.Signals): void;
}

/** `tallyhook reconcile --full --json` as a process of its own. */
export function startRun(
  service: Pick<HostileService, "url">,
  databaseUrl: string,
  { graceSeconds = 0 } = {},
): StartedRun {
  const child = spawn(process.execPath, [inject("program"), "reconcile", "--full", "--json"], {
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: databaseUrl,
      SVC_BASE_URL: service.url,
      SVC_API_KEY: testKey,
      RECONCILE_GRACE_SECONDS: String(graceSeconds),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return {
    exited: once(child, "exit").then(([code]) => ({ code: code as number | null, out, err })),
    onError: (listen) => void child.stderr.on("data", () => listen(err)),
    end: (signal) => void child.kill(signal),
  };
}

/**
 * Kills a run so many times after a random number of further answers, and lets the last one end. Gives back what that one
 * printed.
 */
export async function runWithKills(
  service: HostileService,
  databaseUrl: string,
  { kills, random }: { kills: number; random: Random },
): Promise<{ code: number | null; result: Record<string, unknown> }> {
  for (let n = 0; n < kills; n++) {
    const run = startRun(service, databaseUrl);
    const at = service.requests.length + 2 + Math.floor(random() * 20);
    service.quirks.instead = () => {
      if (service.requests.length >= at) run.end("SIGKILL");
      return undefined;
    };
    const { code, err } = await run.exited;
    if (code !== null && code !== 0) throw new Error(`the run ended by itself: ${err}`);
  }
  delete service.quirks.instead;
  const { code, out, err } = await startRun(service, databaseUrl).exited;
  if (out === "") throw new Error(`nothing was printed: ${err}`);
  return { code, result: JSON.parse(out) as Record<string, unknown> };
}
