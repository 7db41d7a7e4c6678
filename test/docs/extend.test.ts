import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useTestDatabase } from "../support/use-database.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const page = await readFile(join(root, "docs/extend.md"), "utf8");
const database = useTestDatabase();
let project: string;

/** The blocks of code of the report's section, each with the file that the text before it names last. */
function filesOfExample(): { path: string; text: string }[] {
  const [, section = ""] = page.split("\n## A report\n");
  const parts = (section.split("\n## ")[0] ?? "").split(/^```(?:sql|ts)\n(.*?)^```$/ms);
  return parts.flatMap((text, n) => {
    if (n % 2 === 0) return [];
    const named = [
      ...(parts[n - 1] ?? "").matchAll(/`((?:src|migrations)\/[^`\s]*own\/[^`\s]+)`/g),
    ];
    return [{ path: named.at(-1)?.[1] ?? "", text }];
  });
}

/** The example's copy of the program, by its sources. */
const tallyhook = (...args: string[]) =>
  run(process.execPath, [join(project, "src/bin/tallyhook.js"), ...args], {
    cwd: project,
    env: { ...process.env, DATABASE_URL: database.url },
    timeout: 120_000,
  });

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "tallyhook-extend-"));
  for (const name of ["src", "migrations", "package.json", "tsconfig.json"]) {
    await cp(join(root, name), join(project, name), { recursive: true });
  }
  await symlink(join(root, "node_modules"), join(project, "node_modules"));
  for (const { path, text } of filesOfExample()) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), text);
  }
});
afterAll(() => rm(project, { recursive: true, force: true }));

describe("the example of a merchant's own report", () => {
  test("is four files in the merchant's own places", () => {
    expect(filesOfExample().map(({ path }) => path)).toEqual([
      "migrations/own/0001_sales_targets.sql",
      "src/reports/own/sales-targets/sales-targets.sql",
      "src/reports/own/sales-targets/sales-targets.ts",
      "src/reports/own/own-reports.ts",
    ]);
  });

  test("type-checks", async () => {
    const settings = {
      extends: "./tsconfig.json",
      include: [],
      files: ["src/reports/own/own-reports.ts"],
    };
    await writeFile(join(project, "tsconfig.own.json"), JSON.stringify(settings));
    const tsc = join(root, "node_modules/.bin/tsc");
    const { stdout } = await run(tsc, ["-p", "tsconfig.own.json", "--noEmit"], { cwd: project });
    expect(stdout).toBe("");
  });

  test("is migrated and printed", async () => {
    const { stdout: migrated } = await tallyhook("migrate", "--json");
    expect(JSON.parse(migrated)).toEqual({
      applied: ["own/0001_sales_targets"],
      replaced: [expect.stringMatching(/own\/sales-targets\/sales-targets\.sql$/)],
    });
    await database.db.raw(`
      insert into mirror.orders (id, status, currency, created_at, version, last_cause)
      values ('order', 'succeeded', 'usd', '2026-10-05T12:00:00Z', 'v', 'import');
      insert into mirror.transactions (id, order_id, type, status, amount, currency, created_at, version, last_cause)
      values ('sale', 'order', 'sale', 'succeeded', 150000, 'usd', '2026-10-05T12:00:00Z', 'v', 'import')`);
    const month = ["--from", "2026-10", "--format", "csv"];
    const { stdout } = await tallyhook("report", "sales-targets", ...month);
    expect(stdout.trim().split(/\r?\n/)).toEqual([
      "month,currency,sales,target,reached_percent",
      "2026-10,usd,1500.00,2000.00,75.0",
    ]);
  });
});
