/**
 * `node src/bin/copy-sql.js <folder>`: the compiler leaves out what is no TypeScript, so the `.sql` files are put beside
 * what it made. The last step of every build.
 */
import { cpSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const [, , target = "dist"] = process.argv;

for (const folder of ["src", "migrations"]) {
  cpSync(join(root, folder), join(target, folder), {
    recursive: true,
    filter: (path) => path.endsWith(".sql") || statSync(path).isDirectory(),
  });
}
