/**
 * Compiles the program: dist/ becomes what src/ and migrations/ are, file by file. The launcher does so before each start
 * from the sources, `npm run build` by `node src/bin/compile.js [folder]`.
 *
 * A compiled file carries its source's time of change, so that only what changed is made again. Each is put in its place
 * whole: starts at the same time, or one that is killed, leave no half of a file.
 */
import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { statSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("../../", import.meta.url));
const require = createRequire(import.meta.url);

/**
 * Brings `dist` up to date; does nothing where it is. Throws where a source has an error of syntax, and where `dist`
 * cannot be written.
 */
export async function compile(dist = join(project, "dist")) {
  const list = join(dist, "sources.txt");
  const compiler = compilerText();
  const files = ["src", "migrations"].flatMap((folder) => filesIn(folder));
  const text = `${compiler}${files.map(({ path, changedMs }) => `${changedMs} ${path}\n`).join("")}`;
  const before = textOf(list);
  if (before === text) return;
  const isSameCompiler = before.startsWith(compiler);
  const isStale = ({ output, changedMs }) => changedMsOf(join(dist, output)) !== changedMs;
  rmSync(list, { force: true });
  for (const path of leftovers(dist, files)) rmSync(path, { force: true });
  await make(isSameCompiler ? files.filter(isStale) : files, dist);
  // Another start may have put an older form in its place meanwhile: the next one then looks again.
  if (!files.some(isStale)) put(list, 0, (path) => writeFileSync(path, text));
}

function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** What every compiled file depends on besides its source. */
const compilerText = () =>
  [fileURLToPath(import.meta.url), join(project, "tsconfig.json"), require.resolve("esbuild")]
    .map((path) => `${changedMsOf(path)}\n`)
    .join("");

/** When a file was changed, in whole milliseconds, since `utimes` cannot set every part of one; 0 if it is missing. */
const changedMsOf = (path) => Math.floor((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) + 0.01);

const isSource = /\.(m?)ts$/;

/** The files below a folder of the project that have a compiled form. */
const filesIn = (folder) =>
  readdirSync(join(project, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesIn(path);
    // The dashboard's own files, and whatever a handler reads beside itself.
    if (!isSource.test(path) && !/\.sql$|\/dashboard\/assets\/|^src\/handlers\//.test(path)) return [];
    return [{ path, output: path.replace(isSource, ".$1js"), changedMs: changedMsOf(join(project, path)) }];
  });

/** The part of a file that a process writes which still runs. */
function isBeingWritten(path) {
  const [, pid] = /\.(\d+)\.tmp$/.exec(path) ?? [];
  if (pid === undefined) return false;
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Compiled files whose source is gone; declarations are those of `npm run package`. */
function leftovers(dist, files) {
  const wanted = new Set(files.map(({ output }) => join(dist, output)));
  return ["src", "migrations"]
    .flatMap((folder) => below(join(dist, folder)))
    .filter((path) => !wanted.has(path) && !path.endsWith(".d.ts") && !isBeingWritten(path));
}

function below(folder) {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? below(path) : [path];
  });
}

async function make(files, dist) {
  const texts = await transform(files.map(({ path }) => path).filter((path) => isSource.test(path)));
  for (const file of files) {
    const text = texts.get(file.path);
    put(join(dist, file.output), file.changedMs, (temporary) =>
      text === undefined ? copyFileSync(join(project, file.path), temporary) : writeFileSync(temporary, text),
    );
  }
}

/** The compiled text of each. Their imports stay as they are, under the names of compiled files. */
async function transform(sources) {
  if (sources.length === 0) return new Map();
  const outdir = join(project, "dist");
  const { outputFiles } = await require("esbuild").build({
    entryPoints: sources.map((path) => ({ in: join(project, path), out: path.replace(isSource, "") })),
    absWorkingDir: project,
    outdir,
    tsconfig: join(project, "tsconfig.json"),
    format: "esm",
    platform: "node",
    target: "es2023",
    charset: "utf8",
    sourcemap: "inline",
    sourcesContent: false,
    logLevel: "silent",
    write: false,
    bundle: true,
    plugins: [{ name: "imports stay", setup: ({ onResolve }) => onResolve({ filter: /./ }, leaveImport) }],
  });
  const texts = new Map(outputFiles.map(({ path, contents }) => [path, contents]));
  return new Map(sources.map((path) => [path, texts.get(join(outdir, path.replace(isSource, ".js")))]));
}

function leaveImport({ kind, path }) {
  if (kind === "entry-point") return undefined;
  return { path: path.startsWith(".") ? path.replace(isSource, ".$1js") : path, external: true };
}

function put(path, changedMs, write) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  write(temporary);
  utimesSync(temporary, changedMs / 1000, changedMs / 1000);
  renameSync(temporary, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , folder] = process.argv;
  await compile(folder === undefined ? undefined : resolve(folder));
}
