import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { projectRoot } from "./project-root.ts";

const script = fileURLToPath(new URL("embedded-postgres-holder.js", import.meta.url));

export interface HolderReport {
  url: string;
  attached: boolean;
  pid: number;
  port: number;
  error?: { name: string; message: string; cause: string };
}

export interface Holder extends HolderReport {
  /** Its process id and process group. */
  holderPid: number;
  /** Signals the whole group, as a terminal does. */
  signalGroup(signal: NodeJS.Signals): void;
  /** Gives the server up in good order. */
  stop(): Promise<void>;
  /** kill -9 of the holder; returns when it is gone. */
  kill(): Promise<void>;
}

export interface HolderOptions {
  uid?: number;
  gid?: number;
  /** Runs before it in the same shell, such as a `ulimit`. */
  shellPrefix?: string;
}

/** Starts a process that uses the embedded server of `dataDir`; see embedded-postgres-holder.js. */
export async function startHolder(dataDir: string, options: HolderOptions = {}): Promise<Holder> {
  const { shellPrefix = ":", ...account } = options;
  const src = join(inject("image"), "dist", "src");
  const child = spawn("/bin/sh", ["-c", `${shellPrefix}; exec "$@"`, "sh", process.execPath, script, src, dataDir], {
    ...account,
    cwd: projectRoot,
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const holderPid = child.pid;
  if (holderPid === undefined) throw new Error("the holder was not started");
  const closed = once(child, "close");
  const line = (await Promise.race([once(createInterface(child.stdout), "line"), closed])) as unknown[];
  if (typeof line[0] !== "string") throw new Error("the holder ended without a word");
  return {
    ...(JSON.parse(line[0]) as HolderReport),
    holderPid,
    signalGroup: (signal) => void process.kill(-holderPid, signal),
    async stop() {
      child.stdin.end("stop\n");
      await closed;
    },
    async kill() {
      child.kill("SIGKILL");
      await closed;
    },
  };
}
