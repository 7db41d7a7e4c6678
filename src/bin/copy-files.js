/**
 * `node src/bin/copy-files.js <folder>`: copies the `.sql` files and the dashboard's own files beside the compiled
 * output, since the compiler emits TypeScript only. The last step of every build.
 */
import { cpSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const [, , target = "dist"] = process.argv;

const isCopied = (path) => path.endsWith(".sql") || path.includes(join("dashboard", "assets"));

for (const folder of ["src", "migrations"]) {
  cpSync(join(root, folder), join(target, folder), {
    recursive: true,
    filter: (path) => isCopied(path) || statSync(path).isDirectory(),
  });
}
