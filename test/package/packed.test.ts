import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { apply, sampleCustomer, shown } from "../mirror/samples.ts";
import { orderAt, untilRegistered } from "../dispatch/dispatch-stand.ts";
import { killPrograms, runTallyhook } from "../e2e/program.ts";
import { compile } from "../support/compile.ts";
import { eventually } from "../support/eventually.ts";
import { projectRoot } from "../support/project-root.ts";
import { useTestDatabase } from "../support/use-database.ts";

const run = promisify(execFile);
const database = useTestDatabase();

let folder: string;
/** The merchant's project, with the package in its node_modules. */
let shop: string;
let packed: string[];

/**
 * What `npm run package` does, on a copy and with the program that is compiled already. No network: the package is
 * unpacked as npm would, and the packages that it names are linked to those that are here.
 */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-package-"));
  const tree = join(folder, "tree");
  const { stdout } = await run("git", ["ls-files"], { cwd: projectRoot, maxBuffer: 10_000_000 });
  for (const path of stdout.trim().split("\n")) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await cp(join(projectRoot, path), join(tree, path));
  }
  await cp(join(inject("image"), "dist"), join(tree, "dist"), { recursive: true });
  await symlink(join(projectRoot, "node_modules"), join(tree, "node_modules"));
  const errors = await compile(["-p", "src/bin/declarations.json"], tree);
  if (errors !== "") throw new Error(errors);
  // A local file that is not committed, such as one with secrets.
  await writeFile(join(tree, ".env"), "SVC_API_KEY=svc_live_sk_1");
  const pack = await run("npm", ["pack", "--json", "--offline"], {
    cwd: tree,
    maxBuffer: 10_000_000,
  });
  const [{ filename, files } = { filename: "", files: [] }] = JSON.parse(pack.stdout) as {
    filename: string;
    files: { path: string }[];
  }[];
  packed = files.map(({ path }) => path);

  shop = join(folder, "shop");
  await cp(new URL("./shop/", import.meta.url), shop, { recursive: true });
  await mkdir(join(shop, "wrong"));
  await writeFile(join(shop, "package.json"), '{ "name": "shop", "type": "module" }');
  const modules = join(shop, "node_modules");
  await mkdir(join(modules, "tallyhook"), { recursive: true });
  await run("tar", ["-xzf", join(tree, filename), "-C", join(modules, "tallyhook"), "--strip-components=1"]);
  const { dependencies } = JSON.parse(await readFile(join(modules, "tallyhook", "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), "@types/node"]) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(projectRoot, "node_modules", name), join(modules, name));
  }
});
afterAll(async () => {
  await killPrograms();
  await rm(folder, { recursive: true, force: true });
});

test("the package has the compiled program with its SQL, the dashboard's files, the types of handlers, and nothing else", async () => {
  const kinds = new Set(
    packed.map((path) =>
      path
        .replace(/^dist\/(?:src|migrations)\/.*?(\.d\.ts|\.js|\.sql|\.css)$/, "dist/…$1")
        .replace(/^docs\/[\w-]+\.md$/, "docs/…"),
    ),
  );
  expect([...kinds].toSorted()).toEqual([
    "LICENSE",
    "README.md",
    "dist/….css",
    "dist/….d.ts",
    "dist/….js",
    "dist/….sql",
    "docs/…",
    "package.json",
    "src/bin/handlers.js",
    "src/bin/tallyhook.js",
  ]);
  expect(packed).toContain("dist/src/app/dashboard/assets/script.js");
  const migrations = await readdir(join(projectRoot, "migrations"));
  const numbered = migrations.filter((name) => /^\d+_.*\.sql$/.test(name));
  expect(packed).toEqual(expect.arrayContaining(numbered.map((name) => `dist/migrations/${name}`)));
});

describe("a handler of another project", () => {
  const right = "note-orders";

  /** Each is the right one with one thing wrong, and what the compiler must say of it. */
  const wrong: Readonly<Record<string, readonly [from: string, to: string, says: string]>> = {
    "misspelt-kind": [`"order.paid"`, `"order.payed"`, `'"order.payed"' is not assignable`],
    "order-of-a-customer": [`"order.paid", `, "", `Property 'order' does not exist`],
    "unknown-key": ["idempotencyKey,", "idempotenceKey,", `Property 'idempotenceKey' does not exist`],
  };

  test("compiles in strict mode against the package's types, and does not with any of these mistakes", async () => {
    const text = await readFile(join(shop, "handlers", `${right}.ts`), "utf8");
    for (const [name, [from, to]] of Object.entries(wrong)) {
      expect(text).toContain(from);
      await writeFile(join(shop, "wrong", `${name}.ts`), text.replace(from, to));
    }
    const errors = (await compile(["-p", "."], shop)).split("\n").filter((line) => /^\S/.test(line));
    const filesWithErrors = new Set(errors.map((line) => line.split("(")[0]));
    expect(filesWithErrors).toEqual(new Set(Object.keys(wrong).map((name) => `wrong/${name}.ts`)));
    for (const [name, [, , says]] of Object.entries(wrong)) {
      expect(errors.filter((line) => line.startsWith(`wrong/${name}.ts`)).join("\n")).toContain(says);
    }
  });

  test("is loaded from there and run by the installed program", async () => {
    const { db } = database;
    await db.raw(
      "create schema shop; create table shop.noted (seq bigint, kind text, noted text, total bigint, key text)",
    );
    const environment = {
      ...database.environment,
      TALLYHOOK_HANDLERS: join(shop, "handlers"),
      ADMIN_PORT: "0",
    };
    const entry = join(shop, "node_modules/tallyhook/src/bin/tallyhook.js");
    const program = runTallyhook(["handlers", "run"], environment, undefined, entry);
    await program.printed("the handlers run");
    await untilRegistered(db, "note-orders");
    await apply(db, orderAt("order-1", 1_000), shown("customer", sampleCustomer()));
    const noted = await eventually("both are noted", async () => {
      const rows = await db("shop.noted").orderBy("kind").select("kind", "noted", "total");
      return rows.length === 2 && rows;
    });
    expect(noted).toEqual([
      { kind: "customer.created", noted: "jane@example.com", total: null },
      { kind: "order.paid", noted: "order-1", total: "1000" },
    ]);
    expect(await program.stop()).toEqual({ code: 0, signal: null });
  });
});
