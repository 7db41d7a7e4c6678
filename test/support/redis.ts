import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { freePort } from "./free-port.ts";

const READY_WITHIN_MS = 10_000;
const STOP_WITHIN_MS = 5_000;
const PORT_ATTEMPTS = 3;

export const redisInstalled = spawnSync("redis-server", ["--version"]).status === 0;

/**
 * For `describe.skipIf(!redisAvailable)`. On CI it is true without a redis-server as well: there the
 * suites have to fail, not to vanish.
 */
export const redisAvailable = redisInstalled || process.env["CI"] === "true";

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Ends the server gracefully and removes its files. Safe to call twice and after `kill9`. */
  stop(): Promise<void>;
  /** Ends the server as a crash does: without closing connections or writing data. */
  kill9(): Promise<void>;
  /** Brings it back after `kill9` where it was, with its files. */
  restart(): Promise<void>;
  /** Stops it: connections stay open without an answer. */
  pause(): void;
  resume(): void;
  /** Empties every database, as an operator's FLUSHALL does. */
  flush(): Promise<void>;
}

export interface RedisOptions {
  /** A fixed port, to bring a server back where an earlier one was. Default: a free one. */
  readonly port?: number;
  /** Keep an append-only file, synced at every write. Default: no file. */
  readonly appendOnly?: boolean;
  /** Further settings of the server. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A Sentinel with this configuration, which it rewrites. */
  readonly sentinel?: string;
}

/** Resolves when the server reports that it accepts connections; rejects with its output if it ends. */
async function ready(child: ChildProcess, says: string): Promise<void> {
  const output: string[] = [];
  const lines = createInterface({ input: child.stdout! });
  const timer = setTimeout(() => child.kill("SIGKILL"), READY_WITHIN_MS);
  try {
    await new Promise<void>((resolve, reject) => {
      lines.on("line", (line) => {
        output.push(line);
        if (line.includes(says)) resolve();
      });
      child.once("error", reject);
      child.once("exit", () => {
        reject(new Error(`redis-server did not start:\n${output.join("\n")}`));
      });
    });
  } finally {
    clearTimeout(timer);
    child.removeAllListeners("exit");
  }
}

async function launch(port: number, dir: string, options: RedisOptions): Promise<ChildProcess> {
  const settings = {
    bind: "127.0.0.1",
    port: String(port),
    dir,
    ...(options.sentinel === undefined ? serverSettings(options) : {}),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, ...value.split(" ")]);
  if (options.sentinel !== undefined) {
    const file = join(dir, "sentinel.conf");
    await writeFile(file, options.sentinel);
    args.unshift(file, "--sentinel");
  }
  const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "inherit"] });
  await ready(child, options.sentinel === undefined ? "Ready to accept connections" : "+monitor");
  return child;
}

const serverSettings = ({ appendOnly, settings }: RedisOptions) => ({
  save: "",
  "maxmemory-policy": "noeviction",
  appendonly: appendOnly === true ? "yes" : "no",
  appendfsync: "always",
  ...settings,
});

async function launchOnFreePort(dir: string, options: RedisOptions): Promise<{ child: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    try {
      return { child: await launch(port, dir, options), port };
    } catch (error) {
      // Between choosing a port and listening on it, another process may have taken it.
      if (!redisInstalled || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  // A paused server ends once it continues.
  child.kill("SIGCONT");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
  await exited;
  clearTimeout(timer);
}

function endWithTests(child: ChildProcess): void {
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.removeListener("exit", kill));
}

/** A real redis-server of one's own on 127.0.0.1, with `noeviction` as BullMQ demands. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), "tallyhook-redis-"));
  const launched =
    options.port === undefined
      ? launchOnFreePort(dir, options)
      : launch(options.port, dir, options).then((child) => ({ child, port: options.port! }));
  const launchedAt = await launched.catch(async (error: unknown) => {
    await rm(dir, { recursive: true, force: true });
    throw error;
  });
  const { port } = launchedAt;
  let { child } = launchedAt;
  endWithTests(child);

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    stop: async () => {
      await end(child, "SIGTERM");
      await rm(dir, { recursive: true, force: true });
    },
    kill9: () => end(child, "SIGKILL"),
    restart: async () => {
      child = await launch(port, dir, options);
      endWithTests(child);
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    flush: async () => {
      const client = new Redis(port, "127.0.0.1", { lazyConnect: true, maxRetriesPerRequest: 1 });
      try {
        await client.connect();
        await client.flushall();
      } finally {
        client.disconnect();
      }
    },
  };
}
