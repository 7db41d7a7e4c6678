import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { projectRoot } from "./compose-file.ts";

/**
 * A directory with what the Dockerfile copies into its last stage and nothing else, so that a process
 * started there finds what it would find in the container. dist/ is built by the compiler and the
 * settings of `npm run build`; node_modules is a link (its development packages are there as well).
 */
export async function layOutImage(): Promise<string> {
  const image = await mkdtemp(join(tmpdir(), "tallyhook-image-"));
  const dockerfile = await readFile(join(projectRoot, "Dockerfile"), "utf8");
  const copies = [...dockerfile.matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S+)$/gm)];
  for (const [, from = "", to = ""] of copies) {
    const target = join(image, to);
    await mkdir(dirname(target), { recursive: true });
    if (from === "dist") await build(target);
    else if (from === "node_modules") await symlink(join(projectRoot, from), target);
    else await cp(join(projectRoot, from), target);
  }
  return image;
}

async function build(outDir: string): Promise<void> {
  const compiler = join(projectRoot, "node_modules", "typescript", "bin", "tsc");
  await promisify(execFile)(
    process.execPath,
    [compiler, "-p", "tsconfig.build.json", "--outDir", outDir],
    { cwd: projectRoot },
  );
}
