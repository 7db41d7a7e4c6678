import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runScenario } from "../../src/parts/sandbox/cli/trigger.ts";
import { type Scenario, scenarios } from "../../src/parts/sandbox/cli/trigger-scenarios.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import type { PageDeps, PageRequest } from "../../src/app/dashboard/route.ts";
import type { Part } from "../../src/app/part.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import type { ChangeKind } from "../../src/core/mirror/changes/kinds.ts";
import { createLog } from "../../src/platform/log.ts";
import { type ChannelServer, startChannelServer } from "../alerts/channels/channel-server.ts";
import { killPrograms, runTallyhook } from "../e2e/program.ts";
import { compile } from "../support/compile.ts";
import { type DatabaseRoles, makeDatabaseRoles } from "../support/database-roles.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type CodeBlock, codeBlocks, readPage } from "./code-blocks.ts";
import { allParts } from "../../src/main/parts.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readPage("docs/extend.md");
/** Every block of TypeScript of every page, and the SQL of this one. */
const files = codeBlocks.filter(
  ({ language, page: of }) => ["ts", "js"].includes(language) || (language === "sql" && of === "docs/extend.md"),
);
const database = useTestDatabase();
let project: string;
let typeErrors: string;

/** The blocks of code of the page under a heading and those below it, each with the file of the merchant. */
function filesOfExample(title: string): Pick<CodeBlock, "path" | "text">[] {
  const [before = "", section = ""] = page.split(`\n## ${title}\n`);
  const first = before.split("\n").length;
  const last = first + (section.split("\n## ")[0] ?? "").split("\n").length;
  return files
    .filter((block) => block.page === "docs/extend.md" && block.line > first && block.line <= last + 1)
    .map(({ path, text }) => ({ path, text }));
}

/** The copy of the program with the examples. */
const tallyhook = (...args: string[]) => tallyhookWith({}, ...args);

const tallyhookWith = (settings: Record<string, string>, ...args: string[]) =>
  run(process.execPath, [join(project, "src/bin/tallyhook.js"), ...args], {
    cwd: project,
    env: { ...process.env, DATABASE_URL: database.url, ...settings },
    timeout: 120_000,
  });

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "tallyhook-extend-"));
  const copied = ["src", "migrations", "package.json", "tsconfig.json", "tsconfig.build.json"];
  for (const name of copied) {
    await cp(join(root, name), join(project, name), { recursive: true });
  }
  await symlink(join(root, "node_modules"), join(project, "node_modules"));
  for (const block of files) {
    // A program of its own is compiled like the others, by rules that are stricter than `strict`.
    const path = join(project, block.path.includes("/") ? "" : "src", block.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, block.text);
  }
  const receipt = join(project, "src/handlers/send-refund-receipt");
  await cp(`${receipt}.example.ts`, `${receipt}.ts`);
  await putInto("src/main/parts.ts", "parts: readonly Part[]", "freshness", "../parts/freshness/part.ts");
  await putInto("src/main/parts.ts", "parts: readonly Part[]", "heals", "../parts/heals/part.ts");
  await putInto("src/parts/alerts/channels/channel-kinds.ts", "channelKinds", "board", "./board.ts");
  const schemes = "src/core/contract/signature/signature-scheme.ts";
  await putInto(schemes, "schemes", "acmeScheme", "./schemes/acme.ts");
  await putCommand("targets", "targets-command.ts", "registerTargets");
  await putCommand("set-target", "set-target.ts", "registerSetTarget");
  // All at once, which takes little more than one alone. What is in error is built all the same.
  typeErrors = await compile(["-p", "tsconfig.build.json"], project);
  await run(process.execPath, ["src/bin/compile.js"], { cwd: project });
});

/** Imports a name and puts it into a list, as the page says. */
async function putInto(path: string, list: string, name: string, from: string): Promise<void> {
  const text = await readFile(join(project, path), "utf8");
  const listed = text.replace(`const ${list} = [`, `$&${name}, `);
  await writeFile(join(project, path), `import { ${name} } from "${from}";\n${listed}`);
}

/** Lists a command of the example's folder, as the page says. */
async function putCommand(name: string, file: string, register: string): Promise<void> {
  const path = join(project, "src/main/commands.ts");
  const text = await readFile(path, "utf8");
  const from = `../parts/reports/own/sales-targets/${file}`;
  const listed = `{ lists: { "${name} [options]": "what it does" }, load: async () => (await import("${from}")).${register} },`;
  await writeFile(path, text.replace("const own: readonly CommandModule[] = [", `$&\n${listed}`));
}

let roles: DatabaseRoles;
/** Runs a file of the page for roles of the test's own names. They are made by who migrated. */
async function grantRights(example: string): Promise<void> {
  const sql = await readFile(join(project, `deploy/own/${example}-rights.sql`), "utf8");
  await database.db.raw(sql.replaceAll("tallyhook_", `${roles.prefix}_`));
}
beforeAll(async () => {
  roles = await makeDatabaseRoles(database.directUrl);
});
afterAll(() => roles.drop());

afterAll(() => rm(project, { recursive: true, force: true }));

test("all code of all pages is of a file that its page names, and type-checks once it is listed", () => {
  expect(files.filter(({ path }) => !/\.(ts|sql)$/.test(path))).toEqual([]);
  expect(new Set(files.map(({ path }) => path)).size).toBe(files.length);
  expect(typeErrors).toBe("");
});

describe("the example of a merchant's own report", () => {
  test("is five files in the merchant's own places", () => {
    expect(filesOfExample("A report").map(({ path }) => path)).toEqual([
      "migrations/own/0001_sales_targets.sql",
      "src/parts/reports/own/sales-targets/sales-targets.sql",
      "src/parts/reports/own/sales-targets/sales-targets.ts",
      "src/parts/reports/own/own-reports.ts",
      "deploy/own/sales-targets-rights.sql",
    ]);
  });

  test("is migrated and printed", async () => {
    const { stdout: migrated } = await tallyhook("migrate", "--json");
    expect(JSON.parse(migrated)).toEqual({
      applied: ["own/0001_sales_targets", "own/0002_ledger"],
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
    await grantRights("sales-targets");
    for (const role of ["reports", "dashboard", "worker"] as const) {
      const url = { DATABASE_URL: roles.urlOf(role) };
      const printed = await tallyhookWith(url, "report", "sales-targets", ...month);
      expect(printed.stdout, role).toBe(stdout);
    }
  });
});

describe("the example of a part", () => {
  test("is one file, whose check the doctor makes and whose task a worker runs", async () => {
    expect(filesOfExample("A part").map(({ path }) => path)).toEqual(["src/parts/freshness/part.ts"]);
    const { stdout } = await tallyhook("doctor", "--json").catch((error: unknown) => error as { stdout: string });
    const { findings } = JSON.parse(stdout) as { findings: { check: string; status: string }[] };
    expect(findings).toContainEqual(expect.objectContaining({ check: "freshness", status: "ok" }));
    const { freshness } = (await import(join(project, "src/parts/freshness/part.ts"))) as { freshness: Part };
    const logged: object[] = [];
    const log = { info: (values: object) => void logged.push(values) };
    const runtime = { db: async () => database.db, log } as unknown as Runtime;
    const tasks = await freshness.tasks?.(runtime, {});
    await tasks?.["freshness"]?.run(new AbortController().signal);
    const [newest] = await database.db("mirror.orders").max<{ at: Date }[]>("created_at as at");
    expect(logged).toEqual([{ newestOrderAt: newest?.at }]);
  });
});

describe("the example of a list", () => {
  test("has one filter and one order at its command and its page, and refuses at both what it cannot read", async () => {
    expect(filesOfExample("A list").map(({ path }) => path)).toEqual(["src/parts/heals/part.ts"]);
    const { db } = database;
    for (const id of ["1", "2"]) {
      const healed = { id, after_sha256: "", changed_columns: ["total"], healed_by: "ada", reason: `wrong ${id}` };
      await db("mirror.heals").insert([
        { ...healed, resource: "order" },
        { ...healed, resource: "customer" },
      ]);
    }
    const { stdout } = await tallyhook("heals", "--resource", "order", "--json");
    const listed = (JSON.parse(stdout) as { object: string }[]).map(({ object }) => object);
    expect(listed).toEqual(["order 2", "order 1"]);
    await expect(tallyhook("heals", "--resource", "nothing")).rejects.toMatchObject({ code: 64 });
    const { heals } = (await import(join(project, "src/parts/heals/part.ts"))) as { heals: Part };
    const [group] = (await heals.pages?.({} as Runtime)) ?? [];
    const ask = async (query: string) => {
      const request = { query: new URLSearchParams(query) } as PageRequest;
      const answer = await group?.routes[0]?.answer({ db, timeZone: "UTC" } as PageDeps, request);
      return answer as { status?: number; body: { markup: string }; command?: string };
    };
    const page = await ask("resource=order");
    expect(page.body.markup.match(/order \d/g)).toEqual(["order 2", "order 1"]);
    expect(page.command).toBe("node src/bin/tallyhook.js heals --resource order");
    expect(await ask("resource=nothing")).toMatchObject({ status: 400 });
  });
});

describe("the example of an alert condition", () => {
  test("is two files in the merchant's own places", () => {
    expect(filesOfExample("An alert condition").map(({ path }) => path)).toEqual([
      "src/parts/alerts/own/many-refunds.ts",
      "src/parts/alerts/own/own-watches.ts",
    ]);
  });

  test("has a sample, begins when the sweep finds it, and ends", async () => {
    const { stdout } = await tallyhookWith({ LOG_LEVEL: "warn" }, "alerts", "test", "log", "--all");
    expect(stdout).toContain("TEST 34 refunds in 24 h");
    const { db } = database;
    const { rows: before } = await db.raw("select count(*)::int as n from mirror.transactions where type = 'refund'");
    expect(before).toEqual([{ n: 0 }]);
    const states = async () => {
      await sweep();
      return db("alerts.alerts").where("key", "own-many-refunds").select("rule", "severity", "state");
    };
    expect(await states()).toEqual([]);
    await db.raw(`
      insert into mirror.transactions (id, order_id, type, status, amount, currency, created_at, version, last_cause)
      select 'refund-' || n, 'order', 'refund', 'succeeded', 100, 'usd', now(), 'v', 'import'
      from generate_series(1, 20) n`);
    expect(await states()).toEqual([{ rule: "own_many_refunds", severity: "error", state: "open" }]);
    await db("mirror.transactions").where({ type: "refund" }).del();
    expect(await states()).toEqual([{ rule: "own_many_refunds", severity: "error", state: "resolved" }]);
  });

  /** One sweep of the copy. The parts that ask others are left out: nobody answers them. */
  const sweep = () =>
    run(process.execPath, ["--input-type=module", "--eval", sweepOnce], {
      cwd: project,
      env: { ...process.env, DATABASE_URL: database.url },
    });
  const sweepOnce = `
    const { createRuntime } = await import("./dist/src/app/create-runtime.js");
    const { loadConfig } = await import("./dist/src/app/config/config.js");
    const { createLog } = await import("./dist/src/platform/log.js");
    const { wallClock: clock } = await import("./dist/src/platform/clock.js");
    const { loadAlertSettings } = await import("./dist/src/parts/alerts/settings.js");
    const { sweepAlerts } = await import("./dist/src/parts/alerts/run-alerts.js");
    const log = createLog({ level: "silent", name: "test" });
    const runtime = createRuntime([], loadConfig(process.env), log);
    const settings = loadAlertSettings(null);
    const context = { settings, timeZone: "UTC", networkRegion: "global", dashboardUrl: null, clock, serviceClock: clock };
    await sweepAlerts({ db: await runtime.db(), log }, context);
    await runtime.close();`;
});

describe("the examples of a command and of an act", () => {
  test("are a file each", () => {
    const folder = "src/parts/reports/own/sales-targets";
    expect(filesOfExample("A command").map(({ path }) => path)).toEqual([`${folder}/targets-command.ts`]);
    expect(filesOfExample("An act").map(({ path }) => path)).toEqual([`${folder}/set-target.ts`]);
  });

  test("set a target, record who did it, and list the targets", async () => {
    await tallyhook("migrate");
    const set = await tallyhook("set-target", "2026-11", "eur", "30000", "--by", "Ada");
    expect(set.stdout).toBe("The target of 2026-11 is 30000 eur.\n");
    const { stdout: acts } = await tallyhook("audit", "list", "--action", "target.set", "--json");
    expect(JSON.parse(acts)).toMatchObject([
      { actor: "Ada", subject: { kind: "target", id: "2026-11-01 eur" }, after: { amount: 30_000 } },
    ]);
    const { stdout: rows } = await tallyhook("targets", "--currency", "eur", "--json");
    expect(JSON.parse(rows)).toMatchObject([{ amount: "30000" }, { amount: "20000" }]);
    expect((await tallyhook("targets")).stdout).toMatch(/2026-11 +eur +300\.00 EUR/);
    await expect(tallyhook("set-target", "2026-13", "eur", "1", "--by", "Ada")).rejects.toMatchObject({
      stderr: expect.stringContaining("Use a month such as 2026-10."),
    });
  });
});

describe("the example of an alert channel", () => {
  test("is one file", () => {
    expect(filesOfExample("An alert channel").map(({ path }) => path)).toEqual(["src/parts/alerts/channels/board.ts"]);
  });

  test("has its settings, and messages arrive there", async () => {
    const server = await startChannelServer();
    try {
      const file = join(project, "alerts.jsonc");
      const settings = {
        channels: { wall: { kind: "board", urlFrom: "ALERT_BOARD_URL" } },
        defaultChannels: ["wall"],
        destinations: { privateHosts: ["127.0.0.1"] },
      };
      await writeFile(file, JSON.stringify(settings));
      const env = { ALERT_SETTINGS_FILE: file, ALERT_BOARD_URL: server.url };
      const { stdout } = await tallyhookWith(env, "alerts", "test", "wall");
      expect(stdout).toMatch(/Channel "wall" accepted \d+ messages, marked TEST\.\n$/);
      const [first] = server.posts.map(({ body }) => JSON.parse(body) as unknown);
      expect(first).toEqual({
        headline: expect.stringMatching(/^\[CRITICAL\] TEST /),
        todo: expect.stringContaining("This is a test"),
      });
    } finally {
      await server.close();
    }
  });
});

describe("the example of another provider's signature", () => {
  test("is one file", () => {
    expect(filesOfExample("Another provider's signature and envelope")).toEqual([
      { path: "src/core/contract/signature/schemes/acme.ts", text: expect.any(String) },
    ]);
  });

  test("can be set, verifies a request, and is explained", async () => {
    const [secret, body] = ["a-secret-that-is-long-enough", '{"id":"evt_1"}'];
    const signature = createHmac("sha256", secret).update(body).digest("base64");
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(project, name), text);
      return name;
    };
    const headers = await file("headers.txt", `X-Acme-Signature: ${signature}\n`);
    const request = ["--headers", headers, "--body", await file("body.json", body)];
    const secrets = ["--secret-file", await file("secret.txt", secret)];
    const explain = ["signature", "explain", ...request, ...secrets];
    const accepted = await tallyhookWith({ SVC_SIGNATURE_SCHEME: "acme" }, ...explain);
    expect(accepted.stdout).toContain("The receiver's verdict: accepted");
    const refused = await tallyhookWith({ SVC_SIGNATURE_SCHEME: "svc" }, ...explain);
    expect(refused.stdout).toContain("made this signature, under the scheme acme");
  });
});

describe("the examples of handlers", () => {
  let environment: Record<string, string>;
  let mails: MailServer;
  let shop: ChannelServer;
  let runtime: Runtime;

  test("are files of the merchant", () => {
    expect(filesOfExample("Code that runs on changes").map(({ path }) => path)).toEqual([
      "src/handlers/revoke-access.ts",
      "migrations/own/0002_ledger.sql",
      "deploy/own/ledger-rights.sql",
      "src/handlers/post-to-ledger.ts",
    ]);
  });

  beforeAll(async () => {
    [mails, shop] = await Promise.all([startMailServer(), startChannelServer()]);
    environment = {
      ...database.environment,
      TALLYHOOK_DATA_DIR: join(project, ".data"),
      TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
      HOST: "127.0.0.1",
      PORT: String(await freePort()),
      ADMIN_PORT: "0",
      SANDBOX_PORT: String(await freePort()),
      DASHBOARD_PORT: "0",
      LOG_LEVEL: "warn",
      RECEIPTS_SMTP_URL: mails.url,
      RECEIPTS_FROM: "shop@example.com",
      MEMBERS_URL: shop.url,
      REFUNDS_URL: shop.url,
    };
    const entry = join(project, "src/bin/tallyhook.js");
    await runTallyhook(["start"], environment, undefined, entry).printed("Stop with Ctrl-C");
    runtime = createRuntime(allParts, loadConfig(environment), createLog({ level: "silent", name: "test" }));
  });
  afterAll(async () => {
    await runtime?.close();
    await killPrograms();
    await Promise.all([mails.close(), shop.close()]);
  });

  const play = (scenario: Scenario) =>
    runScenario(runtime, scenario, {
      signal: new AbortController().signal,
      say: () => {},
      warn: () => {},
    });
  const trigger = (kind: ChangeKind) => play(scenarios[kind]);

  test("a refund at the sandbox becomes a mail to the customer, and a test of the handler one to the shop", async () => {
    const arrived = mails.next();
    const change = (await trigger("order.refunded")).at(-1)?.change;
    const receipt = await arrived;
    expect(receipt.to).toEqual([expect.stringMatching(/^trigger-.*@example\.test$/)]);
    expect(receipt.source).toMatch(/^Subject: Your refund of \d+\.\d\d EUR\r$/m);
    const again = mails.next();
    const test = ["handlers", "test", "send-refund-receipt", "--change", String(change?.seq)];
    const { stdout } = await tallyhookWith(environment, ...test);
    expect(stdout).toContain("as a test");
    const { to, source } = await again;
    expect(to).toEqual(["shop@example.com"]);
    const idOf = (mail: string) => /^Message-ID: (.*)\r$/m.exec(mail)?.[1];
    // A test is no repeat of the real one.
    expect(idOf(source)).not.toBe(idOf(receipt.source));
  });

  test("the handler of handlers.md tells the shop of each refund", async () => {
    const change = (await trigger("order.refunded")).at(-1)?.change;
    const { amount, currency } = change ?? {};
    const post = await eventually("it is told", () =>
      shop.posts.find(({ path, body }) => path.startsWith("/refunds/") && body.includes(change?.id ?? "-")),
    );
    expect(JSON.parse(post.body)).toEqual({ order: change?.id, amount, currency });
  });

  test("the ledger has each payment and each refund once, and is balanced", async () => {
    const { db } = database;
    await trigger("order.refunded");
    const wanted = await db("feed.changes")
      .whereIn("kind", ["order.paid", "order.refunded"])
      .orderBy("seq")
      .select<{ seq: string; kind: string; amount: string | null; id: string }[]>("seq", "kind", "amount", "id");
    await eventually("all is posted", async () => {
      const posted = await db("books.entries").where({ account: "cash" }).orderBy("change").pluck("change");
      return posted.join() === wanted.map(({ seq }) => seq).join();
    });
    const { rows } = await db.raw<{ rows: { account: string; sum: number }[] }>(
      "select account, sum(amount)::int from books.entries group by 1 order by 1",
    );
    // Each order was paid and refunded whole.
    expect(rows).toEqual([
      { account: "cash", sum: 0 },
      { account: "sales", sum: 0 },
    ]);
  });

  test("the ledger is written by the worker's role, with the rights that the page grants", async () => {
    // A change that is in the ledger already would be refused as a duplicate.
    const [entry] = await database.db("books.entries").del().returning<{ change: string }[]>("change");
    const asWorker = { ...environment, DATABASE_URL: roles.urlOf("worker") };
    const test = ["handlers", "test", "post-to-ledger", "--change", entry?.change ?? ""];
    await expect(tallyhookWith(asWorker, ...test)).rejects.toThrow("permission denied for schema books");
    await grantRights("ledger");
    const { stdout } = await tallyhookWith(asWorker, ...test);
    expect(stdout).toContain("as a test");
  });

  test("a member whose renewal is declined keeps access while the service tries again, and loses it after the last retry", async () => {
    const told = (): boolean[] =>
      shop.posts
        .filter(({ path }) => path.startsWith("/members/"))
        .map(({ body }) => (JSON.parse(body) as { access: boolean }).access);
    const isToldSo = (access: boolean) => () => told().at(-1) === access;
    const lost: Scenario = {
      does: "a renewal that is never paid",
      async run({ shop: { passDay, ...sandbox }, step }) {
        const { id } = await step("subscription.started", () => sandbox.subscription("card_renewal_declined"));
        await eventually("the first charge gives access", isToldSo(true));
        const before = told().length;
        await passDay(id);
        await eventually("a decline is told", () => told().length > before);
        expect(told().at(-1)).toBe(true);
        for (let day = 0; day < 7; day++) await passDay(id);
        await eventually("the access is gone", isToldSo(false));
      },
    };
    await play(lost);
  });
});
