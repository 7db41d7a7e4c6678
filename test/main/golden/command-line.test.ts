import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { createContext } from "../../../src/app/cli/context.ts";
import { commandModules, registerModules } from "../../../src/main/commands.ts";
import { allReports } from "../../../src/parts/reports/catalogue/all.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { letTimePass } from "../../reports/sandbox-history.ts";
import type { TestSandbox } from "../../sandbox/harness.ts";
import { databaseUrl } from "../../support/server-commands.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { playShop, readLately, spoilOrder } from "./history.ts";
import { type Place, type Spoken, helpText, speak, speakAlone, steady, transcript } from "./transcript.ts";
import { allParts } from "../../../src/main/parts.ts";

const database = useTestDatabase();
let sandbox: TestSandbox;
let folder: string;
let environment: Record<string, string>;
const secret = "whsec_the-secret-of-these-tests";
const signedAt = "2025-03-01T12:00:00Z";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-golden-"));
  sandbox = await playShop(database.db);
  environment = {
    DATABASE_URL: database.url,
    SVC_BASE_URL: sandbox.url,
    SVC_API_KEY: testKey,
    SVC_WEBHOOK_SECRETS: secret,
    PUBLIC_URL: "http://127.0.0.1:9",
    RECONCILE_GRACE_SECONDS: "0",
    TALLYHOOK_TIME_ZONE: "Europe/Berlin",
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
  };
  const body = '{"id":"evt_1"}';
  const headers = signatureScheme("svc").sign({
    body: Buffer.from(body),
    secrets: [secret],
    at: new Date(signedAt),
    messageId: "",
  });
  await writeFile(join(folder, "body"), body);
  await writeFile(join(folder, "headers"), `SVC-Signature: ${headers["SVC-Signature"]}\n`);
});
afterAll(async () => {
  await sandbox.close();
  await rm(folder, { recursive: true });
});

/** A command line, and what comes from standard input. `FOLDER` stands for a folder of the test. */
type Line = string | { line: string; stdin?: string; typed?: string; env?: Record<string, string> };

const wordsOf = (line: string): string[] =>
  (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^"(.*)"$/, "$1").replace("FOLDER", folder));

/** Runs the command lines one after the other, and holds all that they print against the family's file. */
async function compare(
  family: string,
  lines: readonly Line[],
  findPlaces: () => Promise<Place[]> = () => Promise.resolve([]),
) {
  let text = "";
  for (const each of lines) {
    const { line, stdin, typed, env = {} } = typeof each === "string" ? { line: each } : each;
    const spoken = await speak(wordsOf(line), {
      env: { ...environment, ...env },
      ...(stdin === undefined ? {} : { stdin }),
      ...(typed === undefined ? {} : { stdin: typed, terminal: true }),
    });
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value} `);
    const typing = typed === undefined ? "" : `   (typed: ${JSON.stringify(typed)})`;
    text += `${transcript(`${settings.join("")}tallyhook ${line}${typing}`, spoken)}\n`;
  }
  await expectFile(family, text, await findPlaces());
}

async function expectFile(family: string, text: string, places: readonly Place[] = []) {
  expect(text).not.toContain(secret);
  await expect(steady(text, [[folder, "FOLDER"], ...places])).toMatchFileSnapshot(
    join(import.meta.dirname, `${family}.txt`),
  );
}

test("help of every command", async () => {
  const program = new Command("tallyhook");
  await registerModules(program, createContext("1.2.3", allParts), commandModules);
  const pathsOf = (command: Command, path: string[]): string[][] => [
    path,
    ...command.commands.flatMap((each) => pathsOf(each, [...path, each.name()])),
  ];
  const paths = program.commands.flatMap((command) => pathsOf(command, [command.name()]));
  const texts: string[] = [];
  for (const path of paths) texts.push(helpText(await speak([...path, "--help"], { env: environment })));
  await expectFile("help", texts.join("\n"));
});

test("import and reconcile", async () => {
  await compare("reconcile", [
    "reconcile --dry-run --full",
    "import",
    "reconcile --full --json",
    "reconcile --from 2025-03-02T00:00:00Z --to 2025-03-01T00:00:00Z",
    "reconcile --full --from 2025-03-02T00:00:00Z",
    "reconcile --from soon",
  ]);
  await spoilOrder(database.db);
  await compare("reconcile-drift", ["reconcile --full --report-only", "reconcile --full --report-only --json"]);
});

test("findings", () =>
  compare("findings", [
    "findings list",
    "findings list --all --json",
    "findings show 4",
    "findings show 4 --json",
    "findings show 999",
    "findings show seven",
    "findings list --state closed",
    "findings list --all --state open",
    "findings ack 8",
    'findings ack 8 --note " "',
    'findings ack 8 --by ann --note "agreed with the bank"',
    "findings list --state acknowledged",
  ]));

test("heal", async () => {
  const order = await spoilOrder(database.db);
  await compare("heal", [
    `heal order ${order}`,
    `heal order ${order} --from-service --by ann`,
    `heal order ${order} --from-service --by ann --reason spoiled`,
    { line: `heal order ${order} --from-service --by ann --reason spoiled`, typed: "n\n" },
    `heal order ${order} --from-service --by ann --reason spoiled --yes`,
    `heal order ${order} --from-service --by root --reason " " --yes`,
    "heal order unknown --from-service --by ann --reason spoiled --yes",
    "heal invoice 1 --from-service --by ann --reason spoiled --yes",
    "reconcile --full",
  ]);
});

test("alerts", () =>
  compare("alerts", [
    "alerts list",
    "alerts list --all --json",
    "alerts list --rule declin",
    "alerts list --severity criticl",
    "alerts list --limit 0",
    "alerts show 1",
    "alerts show 1 --json",
    "alerts show 999",
    'alerts ack 1 --by ada --note "calling her"',
    "alerts ack 1 --by bob",
    "alerts ack 999 --by bob",
    "alerts resend",
    "alerts resend --channel pager",
    "alerts resend 1",
    "alerts test pager",
  ]));

test("events", () =>
  compare("events", [
    "events list --limit 3",
    "events list --limit 2 --type order.created --json",
    "events list --state done",
    "events list --limit 1e3",
    "events show 1",
    "events show 1 --json",
    "events show 999",
    "events prune --older-than 1 --dry-run",
    "events prune",
    "events replay",
    "events replay 999",
    "events replay 1 2",
    "events list --state received",
  ]));

test("changes", () =>
  compare("changes", [
    "changes --limit 5",
    "changes --limit 1 --json",
    "changes --since beginning --kind order.paid,order.refunded --limit 3",
    "changes --since 2030-01-01T00:00:00Z",
    "changes --since soon",
    "changes --kind order.payed",
    "changes --kind paid",
    "changes --resource ordr",
    "changes nobody",
    "changes --follow --since 5 --limit 3",
    "changes consumers",
    "changes consumers list --json",
    "changes consumers remove nobody --yes",
    "changes consumers remove nobody",
  ]));

test("handlers", async () => {
  const { db } = database;
  await mkdir(join(folder, "handlers"));
  const definition = new URL("../../../src/bin/handlers.js", import.meta.url).href;
  await writeFile(
    join(folder, "handlers", "receipts.mjs"),
    `import { RetryLater, defineHandler } from ${JSON.stringify(definition)};
     export default defineHandler({
       name: "receipts",
       on: ["order.created", "order.paid"],
       transactional: true,
       run({ change, isTest }) {
         if (!isTest) throw new Error("is no test");
         if (change.kind === "order.paid") throw new RetryLater(60_000);
         if (change.seq > 2) throw new TypeError("no such template");
       },
     });`,
  );
  await cp(join(folder, "handlers"), join(folder, "half"), { recursive: true });
  await writeFile(join(folder, "half", "wrong.mjs"), "export {};");
  await db("feed.changes").del();
  await db.raw("select setval('feed.change_numbers', 9000)");
  await db("feed.changes").insert(
    ["order.created", "order.paid", "order.created", "order.updated"].map((kind, n) => ({
      seq: n + 1,
      resource: "order",
      kind,
      cause: "event:1",
      id: db.raw("(select min(id) from mirror.orders)"),
    })),
  );
  await db("dispatch.handlers").insert([
    { name: "gone", position: db.raw("feed.readable_until()") },
    {
      name: "mails",
      position: db.raw("feed.readable_until()"),
      paused_by: "failures",
      paused_at: db.fn.now(),
      probe_at: db.fn.now(),
      pause_reason: "It failed for 20 objects in a row, the last time with: TypeError.",
    },
  ]);
  await db("dispatch.counts").insert({ handler: "mails", done: 7, failed: 23 });
  const run = { handler: "mails", resource: "order", kind: "order.paid", change: "{}" };
  await db("dispatch.runs").insert([
    {
      ...run,
      seq: 1,
      id: "order-1",
      is_first: true,
      state: "dead",
      attempts: 12,
      error: "TypeError",
    },
    { ...run, seq: 2, id: "order-1", is_first: false },
    { ...run, seq: 3, id: "order-2", is_first: true, state: "dead", attempts: 12, error: "Error" },
  ]);
  const env = { TALLYHOOK_HANDLERS: join(folder, "handlers") };
  const lines = [
    "handlers list",
    "handlers list --json",
    "handlers show mails",
    "handlers show mails --json",
    "handlers show mails --limit 1",
    "handlers show nobody",
    "handlers show mail",
    "handlers show receipts",
    "handlers retry mails",
    "handlers retry mails --change 1 --all",
    "handlers retry mails --change 2",
    "handlers retry mails --change 4",
    "handlers retry mails --change 3",
    "handlers retry mails --all",
    "handlers skip mails --change 1",
    "handlers skip mails --change 1",
    "handlers skip nobody --change 1",
    'handlers pause gone --reason "the shop moves"',
    'handlers pause gone --reason "two\nlines"',
    "handlers resume gone",
    "handlers resume nobody",
    "handlers retry gone --all",
    "handlers remove mails",
    "handlers remove mials --yes",
    "handlers remove mails --yes",
    "handlers remove mails --yes",
    "changes consumers remove handler:mails --yes",
    "handlers test receipts --change 1",
    "handlers test receipts --change 2",
    "handlers test receipts --change 3",
    "handlers test receipts --change 4",
    "handlers test receipts --change 999999",
    "handlers test mails --change 1",
    "handlers test receipt --change 1",
    "handlers run --now",
  ];
  await compare("handlers", [
    ...lines.map((line) => ({ line, env })),
    ...["handlers list", "handlers test receipts --change 1", "handlers test wrong --change 1"].map((line) => ({
      line,
      env: { TALLYHOOK_HANDLERS: join(folder, "half") },
    })),
    { line: "handlers list", env: { TALLYHOOK_HANDLERS: join(folder, "nowhere") } },
    "handlers run",
  ]);
});

test("forward", async () => {
  const { db } = database;
  const crm = {
    send: "changes",
    url: "http://127.0.0.1:9/in",
    secretFrom: "FORWARD_CRM",
    timeoutSeconds: 1,
  };
  const file = (name: string, destinations: object) =>
    writeFile(join(folder, name), JSON.stringify({ destinations, privateHosts: ["127.0.0.1"] }, null, 2));
  await file("forward.jsonc", { crm });
  await file("wrong.jsonc", { crm: { ...crm, kinds: ["order.refund"], urll: "x" } });
  await db("dispatch.handlers").insert([
    {
      name: "forward:erp",
      position: db.raw("feed.readable_until()"),
      paused_by: "subscriber",
      paused_at: db.fn.now(),
      pause_reason: "It wants nothing more: erp.example.com answered 410 Gone.",
    },
  ]);
  const run = { handler: "forward:erp", resource: "order", kind: "order.paid", change: "{}" };
  await db("dispatch.runs").insert([
    {
      ...run,
      seq: 1,
      id: "order-1",
      is_first: true,
      state: "dead",
      attempts: 106,
      error: "erp.example.com answered 500",
    },
    { ...run, seq: 2, id: "order-2", is_first: true },
    { ...run, seq: 3, id: "order-2", is_first: false },
  ]);
  const secret = `whsec_${"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`;
  const env = { FORWARD_SETTINGS_FILE: join(folder, "forward.jsonc"), FORWARD_CRM: secret };
  const lines = [
    "forward list",
    "forward list --json",
    "forward show erp",
    "forward show crm",
    "forward retry erp",
    "forward retry erp --number 1",
    "forward skip erp --number 1",
    "forward retry erp --number 3",
    "forward show erb",
    "forward resume erp",
    "forward pause erp",
    'forward pause erp --reason "two\nlines"',
    "forward test crm --number 1",
    "forward test crm --number 999999",
    "forward test erp --number 1",
  ];
  await compare("forward", [
    ...lines.map((line) => ({ line, env })),
    { line: "forward list", env: { FORWARD_SETTINGS_FILE: join(folder, "wrong.jsonc") } },
    { line: "forward test crm --number 1", env: { ...env, FORWARD_CRM: "short" } },
    ...[
      "handlers remove forward:erp --yes",
      "changes consumers remove handler:forward:erp --yes",
      "forward remove erp",
      "forward remove erp --yes",
      "forward remove erp --yes",
    ].map((line) => ({ line, env })),
  ]);
});

test("secrets", () =>
  compare("secrets", [
    "secrets list",
    { line: "secrets add --note second", stdin: "whsec_another-secret-of-these-tests" },
    { line: "secrets add", stdin: "whsec_another-secret-of-these-tests" },
    { line: "secrets add", stdin: "short" },
    {
      line: "secrets add --not-after 2025-01-01T00:00:00Z",
      stdin: "whsec_a-third-secret-of-these-tests",
    },
    "secrets add --file /nowhere",
    "secrets list --json",
    "secrets retire db:0",
    "secrets retire env:1",
    "secrets list --quiet-hours 0",
  ]));

test("signature explain", () =>
  compare("signature", [
    `signature explain --headers FOLDER/headers --body FOLDER/body --at ${signedAt}`,
    `signature explain --headers FOLDER/headers --body FOLDER/body --at ${signedAt} --json`,
    "signature explain --headers FOLDER/headers --body FOLDER/body --at 2025-03-01T13:00:00Z",
    `signature explain --headers FOLDER/headers --body FOLDER/headers --at ${signedAt}`,
    "signature explain --headers FOLDER/nothing --body FOLDER/body",
    "signature explain --headers FOLDER/headers",
    "signature explain --headers FOLDER/headers --body FOLDER/body --at noon",
  ]));

test("customers", async () => {
  const { id } = await database.db("mirror.customers").orderBy("id").first("id");
  await compare("customers", [
    `customers erase ${id}`,
    { line: `customers erase ${id} --by ann --reason asked`, typed: "n\n" },
    "customers erase nobody --yes --by ann --reason asked",
  ]);
});

test("reports", async () => {
  await readLately(database.db);
  await letTimePass(database.db);
  await compare("report", [
    "report list",
    "report list --json",
    ...allReports.map(({ name }) => `report ${name} --from 2025-03`),
    "report refunds --from 2025-03 --format csv",
    "report month-end --from 2025-03 --json",
    "report month-end --from 2025-03 --format csv --out FOLDER/month-end.csv",
    "report month-end --from 2025-03 --format xlsx --out FOLDER/month-end.xlsx",
    "report month-end --from 2025-03 --format xlsx",
    "report month-end --from 2025-03 --format pdf",
    "report month-end --json --format csv",
    "report moth-end",
    "report profit",
    "report month-end --from 2025-02-30",
    "report month-end --from 2025-06-02 --to 2025-06-01",
    "report month-end --to yesterday",
    "report month-end --as-of 2025-06-01",
    "report month-end --from 2025-03 --currency gbp",
    "report refunds --accounts x.json",
    "report month-end --mail-to nobody",
    "report month-end --mail-to ann@example.com",
  ]);
  await compare("report-html", ["report month-end --from 2025-03 --format html"], () =>
    Promise.resolve([
      [/<style>.*?<\/style>/gs, ""],
      [/<[^>]*>/g, " "],
      [/[^\S\n]+/g, " "],
      [/^\s+| $/gm, ""],
    ]),
  );
});

test("close", async () => {
  await compare(
    "close",
    [
      "close 2025-13",
      "close 2025-03",
      "close 2025-03 --by ann --dry-run --json",
      "close verify",
      "close 2025-03 --by ann --yes",
      "close 2025-03 --by ann --yes",
      "close 2025-04 --by ann --yes",
      "close verify",
      "close verify --json",
      "close export 2025-03 --out FOLDER/2025-03.json",
      "close export 2024-01 --out FOLDER/2024-01.json",
    ],
    seals,
  );
  await letTimePass(database.db);
  await compare("close-next", ["close 2025-05 --by ann --yes", "close 2025-04 --by ann --yes --json"], seals);
  await letTimePass(database.db);
  await compare(
    "close-forced",
    [
      "close 2025-05 --by ann --yes",
      'close 2025-05 --force "the auditor waits" --by ann --yes',
      "close verify",
      "report month-end --from 2025-04 --to 2025-05",
    ],
    seals,
  );
});

/** A seal is of the times, too, and so are the rows of findings that are open. */
async function seals(): Promise<Place[]> {
  const closes = await database
    .db("reports.closes")
    .select<{ month: string; sha256: string }[]>(database.db.raw("to_char(month, 'YYYY-MM') as month, sha256"));
  return [
    ...closes.map(({ month, sha256 }): Place => [sha256, `seal of ${month}`.padEnd(64, ".")]),
    [/(?<=^exceptions +INCOMPLETE +[1-9]\d* +)\w{64}/gm, "rows with times".padEnd(64, ".")],
  ];
}

test("endpoint with the sandbox", async () => {
  await compare("endpoint", [
    "endpoint list",
    "endpoint rotate",
    "endpoint register --url ftp://example.com",
    "endpoint register --events order.succeeded,order.refunded",
    "endpoint register",
    "endpoint list",
    "endpoint list --json",
    "endpoint rotate --grace-hours 999999",
    "endpoint rotate --grace-hours 1",
    "endpoint test unknown",
    "endpoint remove unknown --yes",
  ]);
});

test("sandbox and migrate", () => compare("sandbox", ["sandbox --port 70000", "migrate"]));

/** Checks of the server that the tests were given, which says what it says. */
const ofServer = "(?:durability|server|database role)";

test("trigger", () =>
  compare("trigger", [
    "trigger",
    "trigger order.refnded",
    "trigger disputed",
    "trigger nonsense",
    "trigger order.paid --amount 100",
    "trigger order.refunded --amount 1.50",
    "trigger order.refunded",
  ]));

test("doctor", () =>
  compare("doctor", ["doctor", "doctor --json"], () =>
    Promise.resolve([
      [new RegExp(`^\\w+ +${ofServer} .*\\n(?: +→ .*\\n)?`, "gm"), ""],
      [new RegExp(`\\{"check":"${ofServer}",.*?\\},`, "g"), ""],
    ]),
  ));

test("wrong uses and what is not there", async () => {
  const nowhere = databaseUrl("postgres://nobody:x@127.0.0.1:9", "nothing");
  await compare("misuse", [
    "nonsense",
    "evnts list",
    "events lst",
    "events list --stat dead",
    "events list extra",
    'events list --type ""',
    "worker --port",
    { line: "events list", env: { DATABASE_URL: nowhere } },
    { line: "reconcile --dry-run", env: { SVC_API_KEY: "svc_test_sk_unknown" } },
  ]);
});

test("processes of their own", async () => {
  const alone: [line: string, env?: Record<string, string>][] = [
    ["--help"],
    ["events list", { TALLYHOOK_TIME_ZONE: "Mars/Olympus", RECONCILE_GRACE_SECONDS: "soon" }],
  ];
  let text = "";
  for (const [line, env = {}] of alone) {
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value} `);
    const spoken = await speakAlone(wordsOf(line), { env: { ...environment, ...env } });
    text += `${transcript(`${settings.join("")}tallyhook ${line}`, spoken)}\n`;
  }
  await expectFile("process", text);
});

test.each(["nonsense", "events list --limit 2", "events show 999"])(
  "a process of its own says to %j what the other files show of this one",
  async (line) => {
    const given = { env: environment };
    const here: Spoken = await speak(wordsOf(line), given);
    expect(await speakAlone(wordsOf(line), given)).toEqual(here);
  },
);
