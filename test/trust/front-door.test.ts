import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";

const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8");

// Sources that came as an archive have no list of what is tracked.
test.skipIf(!existsSync(join(projectRoot, ".git")))(
  "no document and no file tells anybody to run npx tallyhook",
  () => {
    const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: projectRoot, encoding: "utf8" });
    const isToldThere = (path: string): boolean =>
      !path.startsWith("test/") &&
      existsSync(join(projectRoot, path)) &&
      // An answer to "why not": what npx does, or would do.
      read(path)
        .split(/\n\s*\n|\n(?=- )/)
        .some(
          (part) =>
            /\bnpx tallyhook\b/.test(part) && !/\bnpx\b[^]*\b(?:would|pass none|never|ends at|fetch)/.test(part),
        );
    expect(tracked.split("\0").filter((path) => path !== "" && isToldThere(path))).toEqual([]);
  },
);

test("no package may run a script when it is installed, and each is fixed by its hash", () => {
  expect(read(".npmrc")).toMatch(/^ignore-scripts=true$/m);
  const { packages } = JSON.parse(read("package-lock.json")) as {
    packages: Record<string, { integrity?: string; link?: boolean; resolved?: string }>;
  };
  const loose = Object.entries(packages).filter(
    ([path, { integrity = "" }]) => path !== "" && !integrity.startsWith("sha512-"),
  );
  expect(loose.map(([path]) => path)).toEqual([]);
});
