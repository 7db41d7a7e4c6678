import { existsSync, readFileSync, readdirSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { settings } from "../../src/app/config/variables.ts";
import { readSettings } from "../../src/platform/settings.ts";
import { readAccountMap } from "../../src/parts/reports/base/account-map.ts";
import { faultsSchema } from "../../src/parts/sandbox/engine/faults.ts";
import { readAlertRules } from "../deployment/monitoring-files.ts";
import { projectRoot } from "../support/project-root.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { codeBlocks } from "./code-blocks.ts";

/** What runs the blocks of a language on a page; "here" are the tests below, "printed" is what a program prints. */
const runBy: Readonly<Record<string, string>> = {
  "README.md text": "test/main/live-screen.test.ts",
  "docs/data-model.md sql": "test/docs/cookbook.test.ts",
  "docs/deployment.md ini": "here",
  "docs/extend.md sql": "test/docs/extend.test.ts",
  "docs/extend.md ts": "test/docs/extend.test.ts",
  "docs/feed.md sql": "test/docs/feed.test.ts",
  "docs/finance.md dotenv": "here",
  "docs/finance.md json": "here",
  "docs/forwarding.md json": "here",
  "docs/forwarding.md ts": "test/docs/forwarding.test.ts",
  "docs/handlers.md ts": "test/docs/extend.test.ts",
  "docs/monitoring.md yaml": "here",
  "docs/operations.md dotenv": "here",
  "docs/operations.md ini": "test/e2e/pooler.test.ts",
  "docs/operations.md redis": "test/queue/redis-rights.test.ts",
  "docs/operations.md sql": "here",
  "docs/operations.md text": "printed",
  "docs/sandbox.md text": "here",
  "docs/tracing.md dotenv": "here",
};
/** Pictures, and commands: test/docs/command-walks.test.ts. */
const notCode = ["mermaid", "sh"];

const blocksOf = (page: string, language: string) =>
  codeBlocks.filter((block) => block.page === page && block.language === language);
const database = useTestDatabase();

test("every block of code of every page is run by a test, and every fence names its language", () => {
  const found = codeBlocks
    .filter(({ language }) => !notCode.includes(language))
    .map(({ page, language }) => `${page} ${language}`);
  expect([...new Set(found)].toSorted()).toEqual(Object.keys(runBy).toSorted());
  const missing = Object.values(runBy).filter((path) => path.includes("/") && !existsSync(join(projectRoot, path)));
  expect(missing).toEqual([]);
});

test("every file of an example is taken by a test", () => {
  const tests = {
    "alerts.example.jsonc": "test/alerts/settings.test.ts",
    "forward.example.jsonc": "test/forward/settings.test.ts",
    "src/handlers/send-refund-receipt.example.ts": "test/docs/refund-receipt.test.ts",
    ".env.example": "test/main/config/settings-table.test.ts",
  };
  const found = ["", "src"].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: folder !== "", encoding: "utf8" })
      .filter((name) => name.includes(".example"))
      .map((name) => join(folder, name)),
  );
  expect(found.toSorted()).toEqual(Object.keys(tests).toSorted());
  for (const [example, by] of Object.entries(tests)) {
    expect(readFileSync(join(projectRoot, by), "utf8"), by).toContain(example);
  }
});

test.each(blocksOf("docs/operations.md", "sql"))(
  "docs/operations.md, line $line: the statements run",
  async ({ text }) => {
    const statements = text.replaceAll("PID", "0").replaceAll("to tallyhook;", "to current_user;");
    await expect(
      database.db.transaction(async (trx) => {
        await trx.raw(statements);
        await trx.rollback(new Error("taken back"));
      }),
    ).rejects.toThrow("taken back");
  },
);

test("settings on a page are taken", () => {
  const lines = codeBlocks.filter(({ language }) => language === "dotenv").map(({ text }) => text);
  const given = parseEnv(lines.join("").replaceAll("…", "secret"));
  const { problems } = readSettings(settings, given, () => "");
  expect(problems).toEqual([]);
  expect(Object.keys(given).filter((name) => !(name in settings))).toEqual([]);
});

test("docs/finance.md's accounts are taken", async () => {
  const [block] = blocksOf("docs/finance.md", "json");
  const path = join(await mkdtemp(join(tmpdir(), "tallyhook-accounts-")), "accounts.json");
  await writeFile(path, block?.text ?? "");
  expect(await readAccountMap(path)).toEqual(JSON.parse(block?.text ?? ""));
});

test("docs/forwarding.md's delivery is JSON", () => {
  const [block] = blocksOf("docs/forwarding.md", "json");
  expect(JSON.parse(block?.text ?? "")).toMatchObject({ type: "order.refunded" });
});

test("docs/sandbox.md's faults are those of the sandbox", () => {
  const [block] = blocksOf("docs/sandbox.md", "text");
  const given: unknown = JSON.parse((block?.text ?? "").replaceAll(/ {4}[a-z].*$/gm, ""));
  expect(faultsSchema.safeParse(given).error).toBeUndefined();
});

test("docs/monitoring.md's routes name alerts that there are", () => {
  const [block] = blocksOf("docs/monitoring.md", "yaml");
  const rules = new Set(readAlertRules().map(({ alert }) => alert));
  expect(parse(block?.text ?? "")).toMatchObject({ route: { receiver: "tickets" } });
  const named = [...(block?.text ?? "").matchAll(/alertname="(\w+)"/g)].map(([, name]) => name);
  expect(named.filter((name) => !rules.has(name ?? ""))).toEqual([]);
});

test("docs/deployment.md's drop-in gives a setting from the file of its credential", () => {
  const [block] = blocksOf("docs/deployment.md", "ini");
  const [, credential = "", name = "", file] =
    /LoadCredential=(\w+):.*\nEnvironment=(\w+)_FILE=%d\/(\w+)\n/.exec(block?.text ?? "") ?? [];
  expect(name in settings).toBe(true);
  expect(file).toBe(credential);
});
