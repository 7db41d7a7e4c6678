import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { recordAct } from "../../src/app/people/audit.ts";
import { changeCase } from "../../src/app/people/cases.ts";
import { roleNames } from "../../src/app/people/permissions.ts";
import { createLog } from "../../src/platform/log.ts";
import { registerCommands } from "../../src/main/commands.ts";
import { allParts } from "../../src/main/parts.ts";
import { pageGroups } from "../../src/main/run-dashboard.ts";
import { recordFindings } from "../../src/parts/reconcile/findings/findings.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "../dashboard/dashboard-stand.ts";
import { useFilledDatabase } from "../dashboard/filled-database.ts";
import { runCommand } from "./cli/command-line.ts";

/** Found by their definitions: a new list is tested here without being written in. */
const lists = await definedLists();
const database = useFilledDatabase();
let dashboard: DashboardStand;
let cookie: string;

beforeAll(async () => {
  const { db } = database;
  const now = new Date("2026-11-22T12:00:00Z");
  dashboard = await openDashboard(database, { service: database.service });
  cookie = (await signedIn(db, roleNames, { email: "pat@example.com" })).cookie;
  // Text that a shell would read as something else.
  const actor = { accountId: null, name: "o'hara; $(id)", via: "command line", address: null } as const;
  const subject = { kind: "page", id: "/dunning?who='mine'" };
  await db.transaction((trx) => recordAct(trx, actor, { action: "page.seen", subject }));
  const { id: run } = await db("reconcile.runs").orderBy("id").first("id");
  const finding = {
    class: "mismatch",
    identity: null,
    resource: "customer",
    objectId: "cus_1",
    severity: "warning",
  } as const;
  const amounts = { amountAtRiskMinor: null, currency: null, cause: null, differences: [], evidence: {} };
  await recordFindings(db, { run: Number(run), seenAt: now }, [{ key: "customer", ...finding, ...amounts }]);
  const open = await db("reconcile.findings").whereIn("state", ["open", "reopened"]).orderBy("id").first("id");
  const { id: assignee } = await db("people.accounts").where({ email: "pat@example.com" }).first("id");
  await db.transaction((trx) =>
    changeCase(trx, actor, { kind: "finding", id: open.id }, { assignee: Number(assignee) }, { decidedOn: 0, now }),
  );
});
afterAll(() => dashboard.close());

test("the lists of alerts, findings, events and acts are among them", () => {
  expect(lists.length).toBeGreaterThanOrEqual(4);
});

describe.each(lists)("the command that the page $path shows", ({ path, command, filters }) => {
  const labelled = Object.keys(filters).filter((name) => filters[name]?.label !== undefined);

  test("lists the same rows, whichever filter is set, and with all of them", async () => {
    const all = await seen(path);
    await expectSame(all);
    const texts = textsIn(await printed(`${command} --limit 1000 --json`));
    const chosen = new URLSearchParams();
    for (const name of labelled) {
      const found = await firstThatNarrows(path, name, { all, texts });
      expect(found, `a text for ${name} that finds other rows`).not.toBeNull();
      if (found === null) continue;
      await expectSame(found.page);
      chosen.set(name, found.typed);
    }
    const together = await seen(`${path}?${chosen}`);
    await expectSame(together);
    const unsaid = labelled.filter((name) => !together.command.includes(`${filters[name]?.flags.split(" ")[0]} `));
    expect(unsaid).toEqual([]);
  });

  test("lists the older rows that the next page has", async () => {
    const { next } = await seen(path);
    if (next !== null) await expectSame(await seen(next));
  });

  test("is not shown, and nothing is listed, where a filter cannot be read: the command refuses it, too", async () => {
    const wrong = "x".repeat(300);
    for (const name of Object.keys(filters)) {
      const page = await seen(`${path}?${name}=${wrong}`);
      expect([name, page.status, page.rows, page.command]).toEqual([name, 400, [], ""]);
      expect(page.text).toContain(`is not ${filters[name]?.is.wanted}`);
      const option = filters[name]?.flags.split(" ")[0] ?? "";
      const { error } = await run([...command.split(" "), option, wrong]);
      expect(error).toMatchObject({ code: "commander.invalidArgument" });
      expect((await seen(`${path}?${name}=%00`)).status).toBe(400);
    }
  });
});

interface Seen {
  status: number;
  text: string;
  rows: string[];
  /** Empty: the page shows none. */
  command: string;
  next: string | null;
}

async function seen(address: string): Promise<Seen> {
  const answer = await send(`${dashboard.url}${address}`, { cookie });
  const text = unescaped(await answer.text());
  const [, body = ""] = /<tbody>(.*?)<\/tbody>/s.exec(text) ?? [];
  const [, command = ""] = /<footer class="foot">[^<]*<code>(.*?)<\/code>/s.exec(text) ?? [];
  const next = /rel="next" href="([^"]+)"/.exec(text)?.[1] ?? null;
  const rows = body.split("<tr>").slice(1);
  return { status: answer.status, text, rows, command: command.replace("node src/bin/tallyhook.js ", ""), next };
}

/** The first text for a filter by which the page shows other rows than without it, and some. */
async function firstThatNarrows(
  path: string,
  name: string,
  { all, texts }: { all: Seen; texts: readonly string[] },
): Promise<{ typed: string; page: Seen } | null> {
  const [, select = ""] = new RegExp(`<select id="${name}"(.*?)</select>`, "s").exec(all.text) ?? [];
  const options = [...select.matchAll(/<option value="([^"]+)"/g)].map(([, value = ""]) => value);
  for (const typed of options.length > 0 ? options : texts) {
    const page = await seen(`${path}?${new URLSearchParams({ [name]: typed })}`);
    if (page.rows.length > 0 && page.rows.join() !== all.rows.join()) return { typed, page };
  }
  return null;
}

type Row = Readonly<Record<string, unknown>>;

async function expectSame(page: Seen): Promise<void> {
  const rows = await printed(`${page.command} --json`);
  const of = page.rows.map((row, n) => {
    const { id, seq = id, at = "" } = rows[n] ?? {};
    return row.includes(`>${String(seq)}</a>`) || row.includes(`datetime="${String(at)}"`);
  });
  expect([page.command, rows.length, of.includes(false)]).toEqual([page.command, page.rows.length, false]);
}

async function printed(command: string): Promise<Row[]> {
  const { out, error } = await run(shellWords(command));
  expect([command, error]).toEqual([command, null]);
  const found = JSON.parse(out) as Row[] | Readonly<Record<string, Row[]>>;
  return Array.isArray(found) ? found : (Object.values(found).find((value) => Array.isArray(value)) ?? []);
}

const run = (args: string[]) =>
  runCommand((program, context) => registerCommands(program, context, args.slice(0, 2)), args, {
    env: { ...database.environment, TALLYHOOK_TIME_ZONE: "UTC" },
  });

/** As a shell reads them. */
const shellWords = (line: string): string[] =>
  execFileSync("sh", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" })
    .split("\0")
    .slice(0, -1);

/** What stands in the rows, each text once, and rare ones first. */
function textsIn(rows: readonly Row[]): string[] {
  const counts = new Map<string, number>();
  const collect = (value: unknown): void => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(collect);
    else if (value !== null && value !== "") counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  };
  rows.slice(0, 60).forEach(collect);
  return [...counts].sort((a, b) => a[1] - b[1]).map(([text]) => text);
}

const unescaped = (text: string): string =>
  text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");

async function definedLists() {
  const runtime = createRuntime(allParts, loadConfig({}), createLog({ level: "silent", name: "test" }));
  const own = {} as Parameters<typeof pageGroups>[1]["own"];
  return (await pageGroups(runtime, { own, oidc: null }))
    .flatMap((group) => group.routes)
    .flatMap(({ path, list }) => (list === undefined ? [] : [{ path, ...list }]));
}
