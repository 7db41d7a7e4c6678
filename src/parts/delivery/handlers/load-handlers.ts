import { readdir } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigurationError, TallyhookError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { type Handler, checkHandler, isMarked } from "../dispatch/define-handler.ts";

export interface LoadDeps {
  importFile(url: string): Promise<unknown>;
}

const extensions = [".ts", ".mts", ".js", ".mjs"];
/** Declarations, tests, and examples that are off. */
const left = /\.(?:d|test|example)\.[cm]?[jt]s$/;

/** The fault of a handler's file, and the remedy. */
export interface FileProblem {
  file: string;
  message: string;
}

export interface LoadedHandlers {
  handlers: Handler[];
  /** For people: each unusable file with its fault and the remedy; null where all files are usable. */
  problem: string | null;
}

/** Loads the handlers of folders that are usable. Throws `ConfigurationError` for a folder that cannot be read. */
export async function loadHandlers(deps: LoadDeps, folders: readonly string[]): Promise<LoadedHandlers> {
  const { loaded, problems } = await loadFiles(deps, await listHandlerFiles(folders));
  const named = loaded.map(({ file, handler: { name } }) => ({ file, name }));
  const refused = takeNames(new Map(), named);
  const all = [...problems, ...refused];
  return {
    handlers: loaded.flatMap(({ file, handler }) => (refused.some((each) => each.file === file) ? [] : [handler])),
    problem: all.length === 0 ? null : problemsText(all),
  };
}

/** Loads the handlers of files: each one's default export. */
export async function loadFiles(
  { importFile }: LoadDeps,
  files: readonly string[],
): Promise<{ loaded: { file: string; handler: Handler }[]; problems: FileProblem[] }> {
  const problems: FileProblem[] = [];
  const loaded: { file: string; handler: Handler }[] = [];
  for (const file of files) {
    const found = await loadFile(importFile, file);
    if (typeof found === "string") problems.push({ file, message: found });
    else loaded.push({ file, handler: found });
  }
  return { loaded, problems };
}

/**
 * Enters names of handlers into `owners`, which knows the file of each. Returns the files whose name is that of another
 * one: the first keeps it.
 */
export function takeNames(
  owners: Map<string, string>,
  handlers: readonly { file: string; name: string }[],
): FileProblem[] {
  return handlers.flatMap(({ file, name }) => {
    const other = owners.get(name);
    if (other === undefined || other === file) {
      owners.set(name, file);
      return [];
    }
    const message =
      `its name "${name}" is also that of ${shownPath(other)}. Give one of them another name; the position in the ` +
      "feed stays with the name.";
    return [{ file, message }];
  });
}

export function problemsText(problems: readonly FileProblem[]): string {
  const many = problems.length > 1 ? `${problems.length} handlers are` : "One handler is";
  const lines = problems.map(({ file, message }) => `  - ${shownPath(file)}: ${message}`);
  return `${many} not usable:\n${lines.join("\n")}`;
}

/**
 * The paths of the handlers in folders. Files named `….example.ts` are off, and so are tests. Throws `ConfigurationError` for
 * a folder that cannot be read.
 */
export async function listHandlerFiles(folders: readonly string[]): Promise<string[]> {
  return (await Promise.all(folders.map(filesIn))).flat();
}

async function filesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory() && !left.test(entry.name))
      .map(({ name }) => name)
      .filter((name) => extensions.includes(extname(name)))
      .toSorted()
      .map((name) => join(folder, name));
  } catch (error) {
    throw new ConfigurationError(
      `The folder of handlers ${shownPath(folder)} cannot be read (${errorCode(error) ?? "unknown error"}). Check ` +
        "TALLYHOOK_HANDLERS, and that the user who runs this may read it.",
      { cause: error },
    );
  }
}

/** The handler of a file, or its fault. */
async function loadFile(importFile: LoadDeps["importFile"], path: string): Promise<Handler | string> {
  let exported: unknown;
  try {
    exported = defaultOf(await importFile(pathToFileURL(path).href));
    if (isMarked(exported)) return checkHandler(exported);
  } catch (error) {
    return problemOfImport(error);
  }
  return exported === undefined
    ? "it has no default export. Write: export default defineHandler({ … }), or rename it to ….example.ts."
    : "its default export was not made by defineHandler. Write: export default defineHandler({ … }).";
}

/** A CommonJS module, as a folder without `"type": "module"` has them, comes wrapped once more. */
function defaultOf(module: unknown): unknown {
  const { default: exported } = module as { default?: unknown };
  const isWrapped = typeof exported === "object" && exported !== null && "default" in exported;
  return isWrapped ? exported.default : exported;
}

function problemOfImport(error: unknown): string {
  if (error instanceof TallyhookError) return error.message;
  const [name, message] = error instanceof Error ? [error.name, error.message] : ["it", ""];
  const [line = ""] = message.split("\n", 1);
  return (
    `its import failed (${name}: ${line.slice(0, 300)}). Importing a handler must do nothing that can fail: move it into ` +
    "run()."
  );
}

/** A path below the current folder without that. */
export const shownPath = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
};
