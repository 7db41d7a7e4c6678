import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { placement } from "../../bench/support/pinning.ts";
import { startProcess } from "../../bench/support/processes.ts";
import { untilAnswers } from "../../bench/support/tallyhook.ts";
import { freePort } from "../support/free-port.ts";
import { projectRoot } from "../support/project-root.ts";

/** The processes that have this text in their command line or environment. */
async function processesWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    for (const file of ["cmdline", "environ"]) {
      const content = await readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
      if (content.includes(text)) found.push(`${pid} ${file}`);
    }
  }
  return found;
}

const endings: Record<string, (bench: ChildProcess) => void> = {
  "its reader is gone": (bench) => bench.stdout?.destroy(),
  ...(inject("isTorture")
    ? {
        "it gets SIGHUP": (bench: ChildProcess) => void bench.kill("SIGHUP"),
        "it gets SIGTERM": (bench: ChildProcess) => void bench.kill("SIGTERM"),
      }
    : {}),
};

test.skipIf(process.platform !== "linux").each(Object.entries(endings))(
  "a benchmark leaves no server and no process when %s",
  { timeout: 240_000 },
  async (_, end) => {
    const bench = spawn(
      process.execPath,
      ["--import", "tsx", "bench/run.ts", "memory", "--minutes", "1"],
      { cwd: projectRoot, stdio: ["ignore", "pipe", "ignore"] },
    );
    const exited = once(bench, "exit");
    // Its servers run by then.
    await Promise.race([once(bench.stdout, "data"), exited]);
    const directory = join(".data", "bench", `run-${bench.pid}/`);
    expect(await processesWith(directory)).not.toEqual([]);
    end(bench);
    const [code] = (await exited) as [number | null];
    expect(await processesWith(directory)).toEqual([]);
    expect(code).toBeGreaterThan(0);
  },
);

test("a server that does not answer in time is not left running", async () => {
  const directory = await mkdtemp(join(tmpdir(), "tallyhook-bench-"));
  try {
    const file = join(directory, "silent.mjs");
    await writeFile(file, "setInterval(() => {}, 1_000);");
    const child = startProcess({ name: "silent", file, directory, cpus: placement.others });
    const port = await freePort();
    await expect(untilAnswers(child, port, "/", 100)).rejects.toThrow("does not answer");
    expect(child.child.signalCode).toBe("SIGTERM");
  } finally {
    await rm(directory, { recursive: true });
  }
});
