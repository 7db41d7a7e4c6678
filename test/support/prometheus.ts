import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

export const prometheusInstalled = ["prometheus", "promtool"].every(
  (program) => spawnSync(program, ["--version"]).status === 0,
);

/**
 * For `describe.skipIf(!prometheusAvailable)`. On CI it is true without a Prometheus as well: there the suites have to
 * fail, not to vanish.
 */
export const prometheusAvailable = prometheusInstalled || process.env["CI"] === "true";

/** The output of `promtool <args>`, both streams, and whether it succeeded. */
export function promtool(...args: string[]): { isContent: boolean; output: string } {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  return { isContent: status === 0, output: `${stdout}${stderr}` };
}

export interface PrometheusServer {
  /** The answer to a query of its API, without `/api/v1/` and so on. Throws on an error. */
  ask<Data>(path: string, parameters?: Readonly<Record<string, string>>): Promise<Data>;
  stop(): Promise<void>;
}

/** A Prometheus of its own on 127.0.0.1, with these files next to its `prometheus.yml`. */
export async function startPrometheus(
  files: Readonly<Record<"prometheus.yml", string>> & Readonly<Record<string, string>>,
): Promise<PrometheusServer> {
  const dir = await mkdtemp(join(tmpdir(), "tallyhook-prometheus-"));
  for (const [name, content] of Object.entries(files)) await writeFile(join(dir, name), content);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(dir, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(dir, "data")}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.removeListener("exit", kill));
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));

  async function stop(): Promise<void> {
    await end(child);
    await rm(dir, { recursive: true, force: true });
  }
  try {
    await eventually("Prometheus is ready", async () => {
      if (hasEnded(child)) return "ended";
      return (await fetch(`http://${address}/-/ready`)).ok && "ready";
    });
    if (hasEnded(child)) throw new Error(`prometheus ended:\n${output}`);
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    stop,
    async ask<Data>(path: string, parameters: Readonly<Record<string, string>> = {}) {
      const query = new URLSearchParams(parameters).toString();
      const answer = await fetch(`http://${address}/api/v1/${path}?${query}`);
      const body = (await answer.json()) as { status: string; data: Data; error?: string };
      if (body.status !== "success") throw new Error(`${path}: ${body.error}`);
      return body.data;
    },
  };
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Ends it gracefully, since it has to write; by force where it hangs. */
async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
  await exited;
  clearTimeout(timer);
}
