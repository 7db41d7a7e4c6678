import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const versions = "/usr/lib/postgresql";

/** From the path, or from Debian's package; null where it is not installed. The embedded PostgreSQL has none. */
const program: string | null =
  ["psql", ...installed()].find((file) => spawnSync(file, ["--version"]).status === 0) ?? null;

function installed(): string[] {
  if (!existsSync(versions)) return [];
  return readdirSync(versions)
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(versions, version, "bin", "psql"));
}

/** For `test.skipIf(!psqlAvailable)`. On CI it is true in any case: there the tests have to fail, not to vanish. */
export const psqlAvailable = program !== null || process.env["CI"] === "true";

if (!psqlAvailable) console.warn("psql is not installed: the reader of the feed that needs it is skipped.");

export interface Psql {
  /** Runs commands of psql and SQL; resolves with the lines that they printed. Rejects where one of them failed. */
  run(script: string): Promise<string[]>;
  close(): Promise<void>;
}

/** A psql that keeps its session and its variables from one script to the next. */
export function startPsql(url: string): Psql {
  const args = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", url];
  const child: ChildProcessWithoutNullStreams = spawn(program ?? "psql", [...args, "--set", "ON_ERROR_STOP=1"], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = once(child, "close").finally(() => process.removeListener("exit", kill));
  exited.catch(() => {});
  child.stdin.on("error", () => {});
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let scripts = 0;
  return {
    async run(script) {
      const end = `-- end of script ${++scripts}`;
      child.stdin.write(`${script}\n\\echo '${end}'\n`);
      const printed: string[] = [];
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`psql ended: ${errors}`);
        if (value === end) return printed;
        printed.push(value);
      }
    },
    async close() {
      child.stdin.end();
      await exited;
    },
  };
}
