#!/usr/bin/env node
/**
 * The committed entry: plain JavaScript, so that it runs right after `npm ci`.
 *
 * It brings dist/ up to date with src/ and migrations/, and runs it. Where that cannot be done, as in a folder that is
 * read-only or with an error of syntax in one file, it runs the sources through tsx. Both run in this process, so
 * signals, exit codes and the terminal need no forwarding. NODE_ENV does not affect the choice.
 */
import { existsSync, readFileSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const EXIT_NOT_INSTALLED = 2;
const EXIT_UNEXPECTED = 70;

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const built = join(root, "dist", "src", "main", "main.js");
const source = join(root, "src", "main", "main.ts");

/** An image carries only the build. */
async function buildIsCurrent() {
  if (!existsSync(source)) return true;
  const { compile } = await import("./compile.js");
  try {
    await compile();
    return true;
  } catch {
    return false;
  }
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
  if (await buildIsCurrent()) return import(pathToFileURL(built).href);
  const { register } = await import("tsx/esm/api");
  // By default tsx reads the tsconfig.json of the directory in which the command was called.
  register({ tsconfig: join(root, "tsconfig.json") });
  return import(pathToFileURL(source).href);
}

process.setSourceMapsEnabled(true);
// From Node 22.1 on. Not in the folder for temporary files, where other users could put code. Where it cannot be written,
// Node does without.
module.enableCompileCache?.(join(root, "dist", "compile-cache"));

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
