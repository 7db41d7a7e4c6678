/**
 * `node src/bin/copy-sql.js <folder>`: copies the `.sql` files beside the compiled output, since the compiler emits
 * TypeScript only. The last step of every build.
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
