import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";

test("no command loads a package on demand before its work begins", async () => {
  const text = await readFile(join(projectRoot, "src/platform/on-demand.ts"), "utf8");
  const packages = [...text.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name = ""]) => name);
  expect(packages).toContain("pg");
  const program = `
    import { createRequire } from "node:module";
    import "./dist/src/main/main.js";
    import { commandModules } from "./dist/src/main/commands.js";
    for (const { load } of commandModules) await load();
    // Also packages that ES modules import are here, unless they are ES modules themselves: BullMQ, which loads ioredis.
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: inject("image"),
    maxBuffer: 10_000_000,
  });
  const files = JSON.parse(stdout) as string[];
  expect(files.length).toBeGreaterThan(0);
  expect(packages.filter((name) => files.some((file) => file.includes(`/node_modules/${name}/`)))).toEqual([]);
});
