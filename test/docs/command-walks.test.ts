import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, inject, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { createTestDatabase } from "../support/database.ts";
import { freePort } from "../support/free-port.ts";
import { projectRoot } from "../support/project-root.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { codeBlocks } from "./code-blocks.ts";

/** Walked below, in the page's order; or why its commands cannot run here, or which test runs them. */
const walked = "walked";
const pagesWithCommands: Readonly<Record<string, string>> = {
  "README.md: Try it": "installs packages; test/e2e/start.test.ts and demo.test.ts run the rest",
  "README.md: Point it at the real service": walked,
  "CONTRIBUTING.md: Contributing": "runs all tests",
  "docs/backup.md: Make one": "test/main/cli/backup/backup.test.ts, where PostgreSQL has its programs",
  "docs/contributing.md: First steps": "runs all tests",
  "docs/dashboard.md: People": walked,
  "docs/deployment.md: Set it up": walked,
  "docs/deployment.md: Changes": "needs systemd; test/package/packed.test.ts has such a folder",
  "docs/deployment.md: Database roles": "needs systemd; test/e2e/roles.test.ts runs its SQL",
  "docs/deployment.md: Logs, stop, start": "needs systemd",
  "docs/deployment.md: Upgrade": "needs systemd; test/migrations runs every way to upgrade",
  "docs/deployment.md: Restore": "needs systemd; test/e2e/restore.test.ts does it",
  "docs/extend.md: Try one in a minute": "test/docs/extend.test.ts does it in a copy",
  "docs/feed.md: The feed of changes": walked,
  "docs/finance.md: The reports": walked,
  "docs/finance.md: What an auditor gets": "test/reports/close/bundle.test.ts verifies bundles",
  "docs/finance.md: Into a ledger": "test/docs/finance.test.ts",
  "docs/monitoring.md: With Compose": "needs Docker",
  "docs/operations.md: Reconciliation": "test/main/cli/reconcile.test.ts heals",
  "docs/operations.md: Database roles": "test/e2e/roles.test.ts",
  "docs/sandbox.md: The sandbox": walked,
  "docs/sandbox.md: A shop in ten minutes": walked,
  "docs/sandbox.md: Trigger a change": "test/e2e/trigger.test.ts",
  "docs/upgrading.md: Keep a fork up to date": "test/migrations/fork.test.ts",
};

const commandBlocks = codeBlocks.filter(({ language }) => language === "sh");
const commandsOf = (place: string): string => {
  const [page, heading] = place.split(": ");
  const blocks = commandBlocks.filter((each) => each.page === page && each.heading === heading);
  return blocks.map(({ text }) => text).join("");
};

test("every sequence of commands on a page is walked here, or says why not", () => {
  const found = commandBlocks.map(({ page, heading }) => `${page}: ${heading}`);
  expect([...new Set(found)].toSorted()).toEqual(Object.keys(pagesWithCommands).toSorted());
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/**
 * What stands for the machine of whoever reads the page. Programs that go on are left running, until the walk ends; the
 * next command comes when they say that they are ready.
 */
const prelude = `
set -euo pipefail
trap 'code=$?; kill $(jobs -p) 2>/dev/null || true; wait; exit $code' EXIT
goes_on() {
  : > "$1.log"
  "$NODE" "$PROGRAM" "$@" >> "$1.log" 2>&1 &
  grep -qm1 -e 'listens' -e 'runs"' -e 'Stop' -e 'http://' <(tail -n +1 -f --pid=$! "$1.log") || { cat "$1.log" >&2; exit 70; }
}
tallyhook() {
  case "$*" in
    receiver*|worker*|dashboard*|"sandbox --"*) goes_on "$@" ;;
    *--follow*) timeout --signal=INT 3 "$NODE" "$PROGRAM" "$@" || [ $? = 124 ] ;;
    *) "$NODE" "$PROGRAM" "$@" ;;
  esac
}
node() { if [ "$1" = src/bin/tallyhook.js ]; then shift; tallyhook "$@"; else "$NODE" "$@"; fi; }
sudo() { shift 2; "$@"; }
systemctl() { if [ "$*" = "start tallyhook.target tallyhook-backup.timer" ]; then goes_on receiver; goes_on worker; fi; }
docker() {
  case "$*" in
    "compose build") ;;
    "compose run --rm cli "*) tallyhook migrate; shift 4; tallyhook "$@" ;;
    "compose up -d") goes_on receiver; goes_on worker ;;
  esac
}
`;

interface Walk {
  environment?: Record<string, string>;
  database?: "empty" | "migrated";
  replace?: readonly (readonly [string, string])[];
}

/** Runs commands in a shell, in an empty folder, with the sandbox as the service. Returns what they printed. */
async function walk(
  commands: string,
  { environment = {}, database = "migrated", replace = [] }: Walk = {},
): Promise<{ output: string; code: number; folder: string; sandbox: TestSandbox }> {
  const folder = await mkdtemp(join(tmpdir(), "tallyhook-walk-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  const sandbox = await startTestSandbox("walk");
  closing.push(() => sandbox.close());
  const port = await freePort();
  const script = [["https://hooks.example.com", `http://127.0.0.1:${port}`] as const, ...replace].reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    commands,
  );
  const child: ChildProcess = spawn("bash", ["-c", `${prelude}\n${script}`], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      // Commands that are recorded want a person.
      SUDO_USER: "ada",
      NODE: process.execPath,
      PROGRAM: inject("program"),
      DATABASE_URL: await databaseFor(database),
      SVC_BASE_URL: sandbox.url,
      SVC_API_KEY: testKey,
      TALLYHOOK_ENCRYPTION_KEY: randomBytes(32).toString("hex"),
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: "0",
      DASHBOARD_PORT: "0",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const [code] = (await once(child, "close")) as [number];
  return { output, code, folder, sandbox };
}

async function databaseFor(kind: "empty" | "migrated"): Promise<string> {
  if (kind === "migrated") {
    const made = await createTestDatabase();
    closing.push(() => made.destroy());
    return made.directUrl;
  }
  const server = inject("serverUrl");
  const name = `${inject("templateDatabase")}_${randomBytes(4).toString("hex")}`;
  const on = (sql: string) => withServer(server, (client) => client.query(sql));
  await on(`create database ${name} template template0`);
  closing.push(() => on(`drop database ${name} with (force)`));
  return databaseUrl(server, name);
}

/** The endpoint is there, its secret is the only one, and doctor finds all in order. */
async function expectWalked({ output, code, sandbox }: Awaited<ReturnType<typeof walk>>) {
  expect(code, output).toBe(0);
  expect(output).toContain("0 from the environment, 1 in the database");
  const { data } = await sandbox.ok("GET", "/v1/webhook_endpoints");
  expect(data).toHaveLength(1);
}

describe("the way to the real service, on an empty database", () => {
  test("README.md", async () => {
    const commands = commandsOf("README.md: Point it at the real service");
    await expectWalked(await walk(commands, { database: "empty" }));
  });

  test("docs/deployment.md, with the secrets as step 4 has them", async () => {
    const commands = commandsOf("docs/deployment.md: Set it up");
    const start = commands.slice(commands.indexOf("sudo -u tallyhook tallyhook migrate"));
    const page = await readFile(join(projectRoot, "docs/deployment.md"), "utf8");
    const [, none = ""] = /^\| `svc_webhook_secrets` +\| `(\w+)`/m.exec(page) ?? [];
    const environment = await secretFile(none);
    await expectWalked(await walk(start, { database: "empty", environment }));
  });

  test("docker-compose.yml, as its head says", async () => {
    const compose = await readFile(join(projectRoot, "docker-compose.yml"), "utf8");
    const commands = [...compose.matchAll(/^# {3}(docker compose .*?)(?: {2,}.*)?$/gm)]
      .map(([, command = ""]) => command)
      .filter((command) => !command.includes("--profile"));
    expect(commands.length).toBeGreaterThanOrEqual(5);
    const [, none = ""] = /secrets\/svc_webhook_secrets +(\w+);/.exec(compose) ?? [];
    const environment = await secretFile(none);
    await expectWalked(await walk(commands.join("\n"), { database: "empty", environment }));
  });

  async function secretFile(text: string): Promise<Record<string, string>> {
    const folder = await mkdtemp(join(tmpdir(), "tallyhook-secrets-"));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, "svc_webhook_secrets"), `${text}\n`);
    return { SVC_WEBHOOK_SECRETS_FILE: join(folder, "svc_webhook_secrets") };
  }
});

describe("sequences of commands", () => {
  test.each<[string, Walk?]>([
    ["docs/feed.md: The feed of changes", { replace: [["ORDER_ID", "0b5f"]] }],
    ["docs/finance.md: The reports"],
  ])("%s", async (place, how) => {
    const { code, output } = await walk(commandsOf(place), how);
    expect(code, output).toBe(0);
  });

  test("docs/dashboard.md: People", async () => {
    const commands = commandsOf("docs/dashboard.md: People").replace(
      /^(.* users add [^#\n]*)/m,
      "$1 <<< 'correct horse battery staple 7' ",
    );
    const { code, output } = await walk(commands);
    expect(code, output).toBe(0);
  });

  test("docs/sandbox.md: a shop in ten minutes, and what each command prints", async () => {
    const port = await freePort();
    const places = ["docs/sandbox.md: The sandbox", "docs/sandbox.md: A shop in ten minutes"];
    const [start = "", shop = ""] = places.map(commandsOf);
    const said: string[] = [];
    // A comment of one word says what the command prints.
    const shown = shop.replaceAll(/^(.*\S) +# (\w+)$/gm, (_, command: string, word: string) => {
      said.push(word);
      return `echo "said $(${command})"`;
    });
    const { code, output } = await walk(`${start.split("\n")[0]}\n${shown}`, {
      replace: [["4010", String(port)]],
    });
    expect(code, output).toBe(0);
    const printed = [...output.matchAll(/said (\w+)/g)].map(([, word]) => word);
    expect(printed).toEqual(said);
    expect(said.length).toBeGreaterThanOrEqual(5);
  });
});
