import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { allEndpoints } from "../src/parts/sandbox/resources/all-endpoints.ts";
import { architectureFaults, IMPORT_TABLE, type SourceFile } from "./support/architecture-rules.ts";
import { mirrorWriteFaults } from "./support/one-writer.ts";
import { blankComments, blankNonCode, importedModules } from "./support/source-text.ts";

/** The contract itself, the sandbox's controls, and roles, whose first page is one of the portal. */
const ownPaths = [
  "src/core/contract/",
  "src/parts/sandbox/controls/",
  "src/parts/sandbox/resources/team-members/team-member.ts",
];

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.[jt]s$/.test(name))
    .map((name) => ({
      path: join(folder, name),
      text: readFileSync(join(root, folder, name), "utf8"),
    }));
}

/** Faults of files given as `{ path: text }`. */
function faultsOf(files: Record<string, string>): string[] {
  return architectureFaults(Object.entries(files).map(([path, text]) => ({ path, text })));
}

describe("the source tree", () => {
  const files = sourceFiles("src");

  test("was found, with imports in it", () => {
    expect(files.length).toBeGreaterThan(10);
    expect(files.flatMap((file) => importedModules(file.text)).length).toBeGreaterThan(files.length);
  });

  test("keeps the import table, has no cycle, and reads environment, clock and chance in one place", () => {
    expect(architectureFaults(files)).toEqual([]);
  });

  test("names the service's endpoints by its contract, never by a path", () => {
    const first = (path: string) => /^\/(\w+)/.exec(path)?.[1] ?? "";
    const collections = new Set(allEndpoints.map(({ endpoint }) => first(endpoint.path)));
    expect(collections.size).toBeGreaterThan(8);
    const literal = new RegExp(`["'\`](/v1)?/(${[...collections].join("|")})(?=[/?"'\`$])`, "g");
    const found = files
      .filter(({ path }) => !ownPaths.some((own) => path.startsWith(own)))
      .flatMap(({ path, text }) => (blankComments(text).match(literal) ?? []).map((hit) => `${path}: ${hit}`));
    expect(found).toEqual([]);
  });

  test("writes the mirror in one folder", () => {
    expect(mirrorWriteFaults(files)).toEqual([]);
  });

  test("says how the program is called in one file, and writes every command line whole", () => {
    const found = files
      .filter(({ path }) => path !== "src/platform/command-line.ts" && !path.startsWith("src/bin/"))
      .filter(({ text }) => blankComments(text).includes("node src/bin/tallyhook"))
      .map(({ path }) => path);
    expect(found).toEqual([]);
  });
});

describe("one writer of the mirror", () => {
  const faultsOfText = (text: string, path = "src/core/worker/a.ts") => mirrorWriteFaults([{ path, text }]);

  test.each([
    "await db.raw(`insert into mirror.orders (id) values (?)`, [id]);",
    "await db.raw(`INSERT INTO\n  mirror.orders select 1`);",
    'const sql = "update mirror.orders set total = 0";',
    "const sql = `with gone as (delete from only mirror.versions returning id) select 1`;",
    "const sql = `update mirror.${table} set total = 0`;",
    "const sql = `truncate mirror.orders`;",
    "const sql = `copy mirror.orders from stdin`;",
    'const sql = \'merge into "mirror"."orders" using given on true\';',
    'await db("mirror.orders").insert({ id });',
    'await trx("mirror.orders as o")\n  .where({ id })\n  .update({ total: 0 });',
    'await db("mirror.versions").where({ id }).del();',
    'await db.insert(rows).into("mirror.orders");',
    'await db.batchInsert("mirror.orders", rows);',
    'await db.withSchema("mirror").from("orders").where({ id });',
  ])("sees %s", (statement) => {
    expect(faultsOfText(`const a = 1;\n${statement}`)).toEqual([
      "src/core/worker/a.ts:2 writes the mirror: let src/core/mirror/ do it",
    ]);
    expect(faultsOfText(statement, "src/core/mirror/a.ts")).toEqual([]);
  });

  test.each([
    'const rows = await db("mirror.orders").where({ id });\nawait db("inbox.fetches").insert(rows);',
    "const sql = `select o.id from mirror.orders o for update of o`;",
    "const sql = `insert into reconcile.findings select id from mirror.orders`;",
    "// never update mirror.orders here\n/* insert into mirror.orders */",
  ])("leaves alone: %s", (text) => {
    expect(faultsOfText(text)).toEqual([]);
  });
});

describe("the import table", () => {
  const edge = (from: string, to: string): string[] =>
    faultsOf({
      [`src/${from}`]: `import { x } from "${"../".repeat(from.split("/").length - 1) || "./"}${to}";`,
      [`src/${to}`]: "export const x = 1;",
    });

  test.each([
    ["platform/a.ts", "core/contract/b.ts"],
    ["platform/a.ts", "app/config/config.ts"],
    ["core/contract/a.ts", "platform/b.ts"],
    ["core/client/a.ts", "core/mirror/b.ts"],
    ["core/queue/a.ts", "core/inbox/b.ts"],
    ["core/inbox/a.ts", "core/mirror/b.ts"],
    ["core/inbox/a.ts", "core/queue/b.ts"],
    ["core/mirror/a.ts", "core/inbox/queries.ts"],
    ["core/receiver/a.ts", "core/mirror/b.ts"],
    ["core/receiver/a.ts", "core/queue/b.ts"],
    ["core/receiver/a.ts", "core/client/service-client.ts"],
    ["core/receiver/a.ts", "core/inbox/claim.ts"],
    ["core/worker/a.ts", "core/receiver/b.ts"],
    ["core/worker/a.ts", "app/config/config.ts"],
    ["core/mirror/a.ts", "main/runtime.ts"],
    ["app/a.ts", "parts/alerts/b.ts"],
    ["parts/reports/a.ts", "parts/reconcile/b.ts"],
    ["parts/sandbox/engine/a.ts", "core/mirror/b.ts"],
    ["parts/sandbox/engine/a.ts", "app/runtime.ts"],
  ])("forbids %s → %s", (from, to) => {
    expect(edge(from, to)).toEqual([
      expect.stringMatching(new RegExp(`^src/${from}:1 imports src/${to}: [\\w/]+ may import `)),
    ]);
  });

  test.each([
    ["core/client/a.ts", "core/contract/b.ts"],
    ["core/inbox/a.ts", "platform/b.ts"],
    ["core/mirror/a.ts", "core/contract/resources/orders.ts"],
    ["core/receiver/a.ts", "core/contract/signature/verification.ts"],
    ["core/receiver/a.ts", "core/inbox/append.ts"],
    ["core/worker/a.ts", "core/mirror/b.ts"],
    ["parts/sandbox/a.ts", "core/contract/resources/orders.ts"],
    ["parts/alerts/a.ts", "core/contract/decline-codes.ts"],
    ["parts/alerts/a.ts", "core/mirror/resources.ts"],
    ["core/mirror/a.ts", "core/mirror/deep/b.ts"],
    ["main/a.ts", "core/receiver/b.ts"],
    ["bin/a.ts", "main/main.ts"],
  ])("allows %s → %s", (from, to) => {
    expect(edge(from, to)).toEqual([]);
  });

  test("knows every folder of src/", () => {
    expect(edge("newcomer/a.ts", "platform/b.ts")).toEqual([
      "src/newcomer/a.ts:1: src/newcomer is not in the import table",
    ]);
    expect(Object.keys(IMPORT_TABLE)).toContain("bin");
  });

  test.each([
    ['import type { x } from "../mirror/b.ts";', "a type import"],
    ['export { x } from "../mirror/b.ts";', "a re-export"],
    ['export * from "../mirror/b.ts";', "a star export"],
    ['import "../mirror/b.ts";', "an import for effects"],
    ['const b = await import("../mirror/b.ts");', "a dynamic import"],
    ['type B = typeof import("../mirror/b.ts");', "an import type"],
    ['import d, {\n  x,\n  type Y,\n} from "../mirror/b.ts";', "an import over several lines"],
  ])("sees %s (%s)", (statement) => {
    expect(
      faultsOf({ "src/core/queue/a.ts": statement, "src/core/mirror/b.ts": "export const x = 1;" }),
    ).toContainEqual(expect.stringContaining("imports src/core/mirror/b.ts: core/queue may import platform/**"));
  });

  test("lets src import nothing outside itself", () => {
    expect(
      faultsOf({
        "src/main/a.ts": 'import { x } from "../../test/b.ts";',
        "test/b.ts": "export const x = 1;",
      }),
    ).toEqual(["src/main/a.ts:1 imports test/b.ts, which is outside src/"]);
  });

  test("reports an import of a file that is not there", () => {
    expect(faultsOf({ "src/main/a.ts": 'import { x } from "./gone.ts";' })).toEqual([
      "src/main/a.ts:1 imports src/main/gone.ts, which does not exist",
    ]);
  });
});

describe("cycles", () => {
  test("are reported with the path that closes them", () => {
    expect(
      faultsOf({
        "src/core/mirror/a.ts": 'import { b } from "./b.ts";',
        "src/core/mirror/b.ts": 'import type { C } from "./c.ts";',
        "src/core/mirror/c.ts": 'import { a } from "./a.ts";',
      }),
    ).toEqual(["cycle: src/core/mirror/a.ts → src/core/mirror/b.ts → src/core/mirror/c.ts → src/core/mirror/a.ts"]);
  });

  test("are found where a file imports itself and where they are not at the entry", () => {
    expect(
      faultsOf({
        "src/main/entry.ts": 'import { a } from "./a.ts";',
        "src/main/a.ts": 'import { a } from "./a.ts";',
      }),
    ).toEqual(["cycle: src/main/a.ts → src/main/a.ts"]);
  });

  test("are not seen where two paths lead to one file", () => {
    expect(
      faultsOf({
        "src/core/mirror/a.ts": 'import { b } from "./b.ts";\nimport { c } from "./c.ts";',
        "src/core/mirror/b.ts": 'import { c } from "./c.ts";',
        "src/core/mirror/c.ts": "export const c = 1;",
      }),
    ).toEqual([]);
  });
});

describe("environment, clock and chance", () => {
  test.each([
    ["process.env.PORT", "process.env"],
    ['process["env"]', "process.env"],
    ["const { env } = process", "process.env"],
    ["Date.now()", "the wall clock"],
    ["const now = Date.now", "the wall clock"],
    ["new Date()", "the wall clock"],
    ["String(new Date)", "the wall clock"],
    ["Date()", "the wall clock"],
    ["Math.random()", "Math.random"],
    ["`${Math.random()}`", "Math.random"],
  ])("reports %s outside its place", (code, what) => {
    expect(faultsOf({ "src/core/mirror/a.ts": `export const a = 1;\n${code};` })).toEqual([
      expect.stringContaining(`src/core/mirror/a.ts:2 reads ${what}: `),
    ]);
  });

  test.each([
    ["src/app/config/config.ts", "process.env.PORT"],
    ["src/main/main.ts", "process.env.PORT"],
    ["src/platform/clock.ts", "new Date()"],
    ["src/platform/random.ts", "Math.random()"],
    ["src/core/mirror/a.ts", "new Date(text); Date.parse(text); Date.UTC(2026, 1)"],
    ["src/core/mirror/a.ts", "// never call Date.now() or new Date()\n/* process.env */"],
    ["src/core/mirror/a.ts", 'const text = "set process.env, not Math.random()";'],
    ["src/core/mirror/a.ts", "const text = `new Date() ${1}`; const found = /Date.now/.test(text);"],
  ])("allows in %s: %s", (path, code) => {
    expect(faultsOf({ [path]: code })).toEqual([]);
  });
});

describe("form", () => {
  test.each(["src/core/mirror/utils.ts", "src/core/inbox/helpers/row.ts", "src/core/queue/index.ts"])(
    "refuses the name %s",
    (path) => {
      expect(faultsOf({ [path]: "export const a = 1;" })).toEqual([
        `${path}: the name does not say what the file does`,
      ]);
    },
  );

  test("refuses a computed import, which no rule can follow", () => {
    expect(faultsOf({ "src/core/mirror/a.ts": "const m = await import(path);" })).toEqual([
      expect.stringContaining("src/core/mirror/a.ts:1 imports a computed path"),
    ]);
  });
});

describe("blanking what is not code", () => {
  test("keeps length and lines", () => {
    const text = 'a("x\\"y"); // c\n`t ${b({ c: `u` })} v`; /[/"]/.test(d) / 2; /* e\n */ f';
    const blanked = blankNonCode(text);
    expect(blanked).toHaveLength(text.length);
    expect(blanked.replace(/\s+/g, " ")).toBe('a(" "); ` ${b({ c: ` ` })} `; .test(d) / 2; f');
  });

  test("can leave what code says, and blanks comments alone", () => {
    const text = 'a("x // y"); // c\n`t /* ${b /* d */} v`; /[/*]/.test(e);';
    expect(blankComments(text)).toBe('a("x // y");     \n`t /* ${b        } v`; /[/*]/.test(e);');
  });

  test("takes a slash after a value for a division", () => {
    expect(blankNonCode('x = a / b; y = "c" / d')).toBe('x = a / b; y = " " / d');
  });
});
