import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const source = "src/main/main.ts";
const built = "dist/src/main/main.js";
const [past, present] = [new Date("2026-01-01T00:00:00.123Z"), new Date("2026-01-02T00:00:00Z")];

describe("the launcher", () => {
  let project: string;

  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), "tallyhook launcher "));
    await write("package.json", '{ "type": "module" }', past);
    await write("tsconfig.json", "{}", past);
    await symlink(join(projectRoot, "node_modules"), join(project, "node_modules"));
    await mkdir(join(project, "src/bin"), { recursive: true });
    for (const name of ["tallyhook.js", "compile.js"]) {
      await cp(join(projectRoot, "src/bin", name), join(project, "src/bin", name));
    }
    await write("migrations/0001_first.sql", "select 1;", past);
    await write(source, program("sources: number"), past);
  });

  afterEach(async () => {
    await rm(project, { recursive: true, force: true });
  });

  /** A main.ts (the type annotation would not run as JavaScript) or a main.js. */
  const program = (label: string): string => {
    const [name, type] = label.split(": ");
    return `
      const answer${type === undefined ? "" : `: ${type}`} = 7;
      export async function main(argv) {
        if (argv[2] === "throw") throw new Error("thrown by main");
        if (argv[2] === "wait") {
          const timer = setInterval(() => {}, 1_000);
          const asked = new Promise((resolve) => process.once("SIGTERM", resolve));
          console.log("waiting");
          await asked;
          clearInterval(timer);
          return 9;
        }
        console.log("${name}", argv.slice(2).join(" "));
        return argv[2] === "zero" ? 0 : answer;
      }`;
  };

  const write = async (path: string, text: string, at: Date): Promise<void> => {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), text);
    await utimes(join(project, path), at, at);
  };

  /** Changes a compiled file, and leaves its time as it was. */
  const mark = async (path: string, text: string): Promise<void> => {
    const { mtime } = await stat(join(project, path));
    await write(path, text, mtime);
  };

  const launch = (args: string[], environment: Record<string, string> = {}): Promise<Outcome> =>
    new Promise((resolve) => {
      const env = { ...process.env, ...environment };
      const launcher = join(project, "src/bin/tallyhook.js");
      const child = execFile(launcher, args, { env, cwd: tmpdir() }, (_, stdout, stderr) => {
        resolve({ code: child.exitCode, stdout, stderr });
      });
    });

  test.each(["production", "development", "test", ""])(
    "runs the sources where nothing is built, with NODE_ENV=%j",
    async (NODE_ENV) => {
      expect(await launch(["a", "--b"], { NODE_ENV })).toMatchObject({
        code: 7,
        stdout: "sources a --b\n",
      });
    },
  );

  test("compiles once what does not change", async () => {
    await launch(["zero"]);
    await mark(built, program("kept"));
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "kept zero\n" });
  });

  test.each([
    ["newer", present],
    ["older, as from an archive", new Date("2025-12-31T00:00:00Z")],
  ])("compiles a source that is %s again, and leaves the others", async (_, at) => {
    await write("src/main/other.ts", "export const other: number = 1;", past);
    await launch(["zero"]);
    await mark("dist/src/main/other.js", "// kept");
    await write(source, program("changed: number"), at);
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "changed zero\n" });
    expect(await readFile(join(project, "dist/src/main/other.js"), "utf8")).toBe("// kept");
  });

  test("compiles everything again for another configuration of the compiler", async () => {
    await launch(["zero"]);
    await mark(built, program("kept"));
    await write("tsconfig.json", "{}", present);
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "sources zero\n" });
  });

  test("follows migrations, what handlers read, and deleted files", async () => {
    await write("src/handlers/text.html", "first", past);
    await write("src/main/other.ts", "export const other: number = 1;", past);
    await launch(["zero"]);
    await write("migrations/0002_second.sql", "select 2;", past);
    await write("src/handlers/text.html", "second", present);
    await rm(join(project, "migrations/0001_first.sql"));
    await rm(join(project, "src/main/other.ts"));
    await launch(["zero"]);
    expect(await readdir(join(project, "dist/migrations"))).toEqual(["0002_second.sql"]);
    expect(await readdir(join(project, "dist/src/main"))).toEqual(["main.js"]);
    expect(await readFile(join(project, "dist/src/handlers/text.html"), "utf8")).toBe("second");
  });

  test("starts several at once where nothing is compiled, or a killed one left a part of a file", async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => launch(["zero"])));
    expect(all.map(({ stdout }) => stdout)).toEqual(Array(4).fill("sources zero\n"));
    // What a killed one leaves: a part of a file under another name, and no list of what is compiled.
    await rm(join(project, "dist/sources.txt"));
    await rm(join(project, built));
    await write(`${built}.99999999.tmp`, "export async func", past);
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "sources zero\n" });
    expect(await readdir(join(project, "dist/src/main"))).toEqual(["main.js"]);
  });

  test.each([
    ["another file has an error of syntax", () => write("src/main/other.ts", "export const = ;", past)],
    ["nothing can be compiled", () => write("dist", "in its place", past)],
  ])("runs the sources where %s", async (_, prepare) => {
    await prepare();
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "sources zero\n" });
  });

  test("runs the build where there are no sources, as in an image", async () => {
    await write(built, program("build"), past);
    await rm(join(project, source));
    await rm(join(project, "migrations"), { recursive: true });
    expect(await launch(["zero"])).toMatchObject({ code: 0, stdout: "build zero\n" });
  });

  test("reports what main throws at its place in the source, with exit code 70", async () => {
    const { code, stderr } = await launch(["throw"]);
    expect(code).toBe(70);
    expect(stderr).toMatch(/thrown by main[^]*main\.ts:4:/);
  });

  test("says what to do before the packages are installed, with exit code 2", async () => {
    await rm(join(project, "node_modules"));
    const { code, stderr } = await launch([]);
    expect(code).toBe(2);
    expect(stderr).toContain('Run "npm ci"');
  });

  test("lets main answer a signal in the process that got it", async () => {
    const child = spawn(join(project, "src/bin/tallyhook.js"), ["wait"]);
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([9, null]);
  });
});

test("a program that npx started ends in good order when npx is told to end, and says why", async () => {
  const cache = await mkdtemp(join(tmpdir(), "tallyhook-npm-"));
  const npx = spawn("npx", ["tallyhook", "sandbox", "--port", "0"], {
    cwd: inject("image"),
    env: { ...process.env, npm_config_cache: cache, npm_config_offline: "true" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  npx.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  let stdout = "";
  const isUp = new Promise<string>((resolve) => {
    npx.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      const [, url] = /answers at (\S+)/.exec(stdout) ?? [];
      if (url !== undefined) resolve(url);
    });
  });
  const url = await isUp;
  npx.kill("SIGTERM");
  // It holds the pipe until it ends.
  await once(npx, "close");
  await expect(fetch(`${url}/_sandbox`)).rejects.toThrow();
  expect(stderr).toContain("npm, which started this program, has ended. Stopping.");
  await rm(cache, { recursive: true, force: true });
});

test("npx runs it inside the project without asking and without a network", async () => {
  const cache = await mkdtemp(join(tmpdir(), "tallyhook-npm-"));
  const env = { ...process.env, npm_config_cache: cache, npm_config_offline: "true" };
  const npx = spawn("npx", ["tallyhook", "signature", "--help"], { cwd: inject("image"), env });
  let stdout = "";
  npx.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  npx.stdin.end();
  const [code] = (await once(npx, "close")) as [number];
  await rm(cache, { recursive: true, force: true });
  expect(stdout).toContain("Usage: tallyhook signature");
  expect(code).toBe(0);
});
