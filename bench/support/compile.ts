import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { benchDirectory, projectRoot } from "./places.ts";

const built = join(benchDirectory, "build");
const entry = join(benchDirectory, "src", "bin", "tallyhook.js");

/**
 * Compiles the program and the servers it is compared with, as for a deployment. Running through tsx would distort the
 * results: it adds a call to every created function. Types are checked by `npm run check`, not here.
 */
export async function compile(): Promise<void> {
  const tsc = join(projectRoot, "node_modules", "typescript", "bin", "tsc");
  const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: projectRoot });
  await run(tsc, "-p", join(projectRoot, "bench"), "--noCheck");
  await run(join("src", "bin", "compile.js"), built);
  // A worker starts its handlers by the program's entry, which is next to a build.
  await mkdir(join(entry, ".."), { recursive: true });
  await writeFile(entry, 'import "../../build/bench/servers/tallyhook.js";\n');
}

/** The path of a source file's compiled form. */
export function compiled(source: URL): string {
  const path = relative(projectRoot, fileURLToPath(source));
  return join(built, path.replace(/\.ts$/, ".js"));
}
