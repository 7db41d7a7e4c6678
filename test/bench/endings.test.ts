import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, inject, test } from "vitest";
import { placement } from "../../bench/support/pinning.ts";
import { startProcess } from "../../bench/support/processes.ts";
import { untilAnswers } from "../../bench/support/tallyhook.ts";
import { eventually } from "../support/eventually.ts";
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
  "it gets SIGHUP": (bench) => void bench.kill("SIGHUP"),
  "it gets SIGTERM": (bench) => void bench.kill("SIGTERM"),
};

const run = (args: readonly string[]): ChildProcess & { stdout: Readable } =>
  spawn(process.execPath, ["--import", "tsx", ...args], {
    cwd: projectRoot,
    stdio: ["ignore", "pipe", "ignore"],
  });

/** What ends a benchmark, around one program that is no server. */
const program = (folder: string): string => `
  import { writeFile } from "node:fs/promises";
  import { placement } from "${projectRoot}/bench/support/pinning.ts";
  import { startProcess } from "${projectRoot}/bench/support/processes.ts";
  import { endInAnyCase } from "${projectRoot}/bench/support/ending.ts";
  endInAnyCase(() => writeFile("${folder}/closed", ""));
  const file = "${folder}/silent.mjs";
  startProcess({ name: "silent", file, directory: "${folder}", cpus: placement.others });
  setInterval(() => console.log("running"), 20);
`;

test.skipIf(process.platform !== "linux").each(Object.entries(endings))(
  "what a benchmark has started is ended when %s",
  async (_, end) => {
    const folder = await mkdtemp(join(tmpdir(), "tallyhook-endings-"));
    try {
      await writeFile(join(folder, "silent.mjs"), "setInterval(() => {}, 1_000);");
      await writeFile(join(folder, "program.ts"), program(folder));
      const bench = run([join(folder, "program.ts")]);
      const exited = once(bench, "exit");
      await Promise.race([once(bench.stdout, "data"), exited]);
      const silent = join(folder, "silent.mjs");
      expect(await processesWith(silent)).not.toEqual([]);
      end(bench);
      const [code] = (await exited) as [number | null];
      await eventually("it is gone", async () => (await processesWith(silent)).length === 0);
      expect(await readdir(folder)).toContain("closed");
      expect(code).toBeGreaterThan(0);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

/** A real one makes its build and its servers first. */
const realEndings = inject("isTorture") ? Object.entries(endings) : [];

test.skipIf(process.platform !== "linux").each(realEndings)(
  "a benchmark leaves no server and no process when %s",
  { timeout: 240_000 },
  async (_, end) => {
    const bench = run(["bench/run.ts", "memory", "--minutes", "1"]);
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
