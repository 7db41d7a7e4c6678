import { readdir } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigurationError, TallyhookError } from "../platform/errors.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import { type Handler, checkHandler, isMarked } from "./define-handler.ts";

export interface LoadDeps {
  /** Imports a file by its URL. */
  importFile(url: string): Promise<unknown>;
}

const extensions = [".ts", ".mts", ".js", ".mjs"];
/** Declarations, tests, and examples that are off. */
const left = /\.(?:d|test|example)\.[cm]?[jt]s$/;

/**
 * Loads the handlers of folders: each file's default export. Files named `….example.ts` are off, and so are tests.
 * Throws one `ConfigurationError` that says of every file what is wrong with it and what to do.
 */
export async function loadHandlers(
  { importFile }: LoadDeps,
  folders: readonly string[],
): Promise<Handler[]> {
  const problems: string[] = [];
  const loaded: { file: string; handler: Handler }[] = [];
  for (const path of await listHandlerFiles(folders)) {
    const file = shownPath(path);
    const found = await loadFile(importFile, path);
    if (typeof found === "string") problems.push(`${file}: ${found}`);
    else loaded.push({ file, handler: found });
  }
  const files = new Map<string, string>();
  for (const { file, handler } of loaded) {
    const other = files.get(handler.name);
    if (other === undefined) files.set(handler.name, file);
    else {
      problems.push(
        `${file}: its name "${handler.name}" is also that of ${other}. Give one of them another name; the position in ` +
          "the feed stays with the name.",
      );
    }
  }
  if (problems.length === 0) return loaded.map(({ handler }) => handler);
  const many = problems.length > 1 ? `${problems.length} handlers are` : "One handler is";
  throw new ConfigurationError(
    `${many} not usable:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`,
  );
}

/** The paths of the files that `loadHandlers` loads. Throws `ConfigurationError` for a folder that cannot be read. */
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

/** The handler of a file, or what is wrong with it. */
async function loadFile(
  importFile: LoadDeps["importFile"],
  path: string,
): Promise<Handler | string> {
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

const shownPath = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
};
