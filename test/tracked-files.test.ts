import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const git = (...args: string[]): string[] =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);

/** What belongs to one machine or one network, and so in no file that others get. */
const foreign = [
  {
    what: "the address of a package registry",
    pattern: /\bregistry\.[a-z0-9-]+\.(?:org|com|io|dev)\b/,
  },
  { what: "a resolved address in the lock file", pattern: /"resolved": "https?:/ },
  {
    what: "a path of somebody's machine",
    pattern: /(?<![\w.])\/(?:home\/[a-z]|Users\/[A-Z]|work\/|root\/)/,
  },
];

const faultsIn = (path: string, text: string): string[] =>
  text
    .split("\n")
    .flatMap((line, index) =>
      foreign.filter(({ pattern }) => pattern.test(line)).map(({ what }) => `${path}:${index + 1} holds ${what}`),
    );

// Sources that came as an archive have no list of what is tracked.
describe.skipIf(!existsSync(join(root, ".git")))("tracked files", () => {
  test("name no package registry and no path of the machine they were written on", () => {
    const tracked = git("ls-files", "-z", "--cached", "--others", "--exclude-standard");
    expect(tracked).toContain("package-lock.json");
    expect(
      tracked
        .filter((path) => path !== "test/tracked-files.test.ts" && existsSync(join(root, path)))
        .flatMap((path) => faultsIn(path, readFileSync(join(root, path), "utf8"))),
    ).toEqual([]);
  });

  test("would be found out", () => {
    expect(faultsIn("a", 'x\n"resolved": "https://registry.npmjs.org/a"\n# see /home/me/a')).toEqual([
      "a:2 holds the address of a package registry",
      "a:2 holds a resolved address in the lock file",
      "a:3 holds a path of somebody's machine",
    ]);
  });
});

test.each(["src/bin/tallyhook.js", ".ci/run"])("%s can be executed", (path) => {
  expect(statSync(join(root, path)).mode & 0o111).toBe(0o111);
});
