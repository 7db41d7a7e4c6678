/** `npm run --silent sbom > sbom.json`: a CycloneDX list of what a deployment may install. Asks no registry. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/project-root.ts";
import { type Bom, type Lock, productionBom } from "./sbom.ts";

const read = (name: string): unknown => JSON.parse(readFileSync(join(projectRoot, name), "utf8"));
const asked = ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--offline"];
const all = execFileSync("npm", asked, {
  cwd: projectRoot,
  encoding: "utf8",
  maxBuffer: 64 * 2 ** 20,
  stdio: ["ignore", "pipe", "ignore"],
});
const { name } = read("package.json") as { name: string };
const bom = productionBom(JSON.parse(all) as Bom, read("package-lock.json") as Lock, name);
// A reader such as `head` may have enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
