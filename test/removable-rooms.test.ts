import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const rooms = ["The sandbox", "The endpoint", "Reports"];

let steps: ReadonlyMap<string, string>;
let folder: string;

beforeAll(async () => {
  const page = await readFile(join(root, "docs/extend.md"), "utf8");
  const [, section = ""] = page.split("\n## Delete what you do not need\n");
  const parts = (section.split("\n## ")[0] ?? "").split("\n### ").slice(1);
  steps = new Map(parts.map((part) => [part.split("\n", 1)[0] ?? "", part]));
  folder = await mkdtemp(join(tmpdir(), "tallyhook-rooms-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the page tells of every room that can be deleted, and of no other", () => {
  expect([...steps.keys()]).toEqual(rooms);
});

test.each(rooms)(
  "without this room the rest type-checks: %s",
  async (room) => {
    const copy = join(folder, room.replaceAll(" ", "-"));
    for (const name of ["src", "tsconfig.json", "package.json"]) {
      await cp(join(root, name), join(copy, name), { recursive: true });
    }
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    await follow(copy, steps.get(room) ?? "");
    const config = { extends: "./tsconfig.json", include: ["src"] };
    await writeFile(join(copy, "tsconfig.src.json"), JSON.stringify(config));
    expect(await typeErrors(copy)).toBe("");
  },
  120_000,
);

/** Does what a list of steps says: whole files first, then lines. */
async function follow(copy: string, text: string): Promise<void> {
  const items = text.split("\n- ").slice(1);
  const kept = items.filter((item) => item.startsWith("Keep ")).flatMap(quoted);
  for (const item of items) {
    const [first = "", ...others] = quoted(item);
    if (item.startsWith("Delete ")) {
      for (const path of [first, ...others]) await remove(copy, path, kept);
    } else if (item.startsWith("In ")) {
      const file = join(copy, first);
      const lines = (await readFile(file, "utf8")).split("\n");
      for (const word of others) expect(lines.join("\n"), `${first} has ${word}`).toContain(word);
      const left = lines.filter((line) => !others.some((word) => line.includes(word)));
      await writeFile(file, left.join("\n"));
    }
  }
}

const quoted = (item: string): string[] =>
  [...item.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

async function remove(copy: string, path: string, kept: readonly string[]): Promise<void> {
  const full = join(copy, path);
  const isFolder = (await stat(full)).isDirectory();
  const files = isFolder ? await readdir(full, { recursive: true, withFileTypes: true }) : [];
  const isKept = (file: string): boolean =>
    kept.some((pattern) => {
      const [before = "", after = ""] = pattern.split("*");
      return file.startsWith(before) && file.endsWith(after);
    });
  if (!isFolder) await rm(full);
  for (const file of files.filter((each) => each.isFile())) {
    const at = join(file.parentPath, file.name);
    if (!isKept(at.slice(copy.length + 1))) await rm(at);
  }
}

/** What the compiler prints; nothing when all is well. */
const typeErrors = (copy: string): Promise<string> =>
  new Promise((resolve) => {
    const compiler = join(root, "node_modules/.bin/tsc");
    execFile(compiler, ["-p", join(copy, "tsconfig.src.json")], (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
