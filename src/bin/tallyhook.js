#!/usr/bin/env node
/**
 * The committed entry: plain JavaScript, so that it runs right after `npm ci`.
 *
 * It runs the build in dist/ if that is newer than everything under src/ and migrations/, otherwise the sources through
 * tsx. Both run in this process, so signals, exit codes and the terminal need no forwarding. NODE_ENV does not affect
 * the choice.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const EXIT_NOT_INSTALLED = 2;
const EXIT_UNEXPECTED = 70;

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const built = join(root, "dist", "src", "main", "main.js");
const source = join(root, "src", "main", "main.ts");

/**
 * The latest modification time under a directory. Directories count too: deleting a file changes only its directory.
 */
function newestChangeMs(directory) {
  let newest = statSync(directory).mtimeMs;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    newest = Math.max(newest, entry.isDirectory() ? newestChangeMs(path) : statSync(path).mtimeMs);
  }
  return newest;
}

function buildIsCurrent() {
  if (!existsSync(built)) return false;
  if (!existsSync(source)) return true; // an image carries only the build
  const builtMs = statSync(built).mtimeMs;
  return ["src", "migrations"].every((name) => newestChangeMs(join(root, name)) < builtMs);
}

/** Its packages lie in its own node_modules, or beside it where it was installed as a package. */
function isInstalled() {
  try {
    import.meta.resolve("commander");
    return true;
  } catch {
    return false;
  }
}

async function loadMain() {
  if (buildIsCurrent()) return import(pathToFileURL(built).href);
  const { register } = await import("tsx/esm/api");
  // By default tsx reads the tsconfig.json of the directory in which the command was called.
  register({ tsconfig: join(root, "tsconfig.json") });
  return import(pathToFileURL(source).href);
}

process.setSourceMapsEnabled(true);

if (isInstalled()) {
  try {
    const { main } = await loadMain();
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    process.exitCode = await main(process.argv, version);
  } catch (error) {
    console.error(error);
    process.exitCode = EXIT_UNEXPECTED;
  }
} else {
  console.error(`tallyhook: its packages are not installed. Run "npm ci" in ${root} first.`);
  process.exitCode = EXIT_NOT_INSTALLED;
}
