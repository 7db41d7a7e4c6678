import { beforeAll, expect, test } from "vitest";
import { type Actor, type RecordedAct, recordAct } from "../../../src/app/people/audit.ts";
import { registerAudit } from "../../../src/main/cli/audit.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";

const database = useTestDatabase();
const ada: Actor = { accountId: 1, name: "ada@example.com", via: "dashboard", address: "10.0.0.7" };
const bob: Actor = { accountId: null, name: "bob", via: "command line", address: null };

beforeAll(async () => {
  const acts: [Actor, RecordedAct][] = [
    [ada, { action: "sign-in.done" }],
    [ada, { action: "event.replayed", subject: { kind: "event", id: "17" } }],
    [
      bob,
      {
        action: "account.roles-changed",
        subject: { kind: "account", id: "ada@example.com" },
        before: { roles: ["viewer"] },
        after: { roles: ["viewer", "admin"], since: null },
      },
    ],
  ];
  for (const [actor, act] of acts) {
    await database.db.transaction((trx) => recordAct(trx, actor, act));
  }
});

const list = (...args: string[]) =>
  runCommand(registerAudit, ["audit", "list", ...args], { env: { DATABASE_URL: database.url } });

const actionsOf = async (...args: string[]): Promise<string[]> => {
  const { out, error } = await list(...args, "--json");
  expect(error).toBeNull();
  return (JSON.parse(out) as { action: string }[]).map(({ action }) => action);
};

const [signedIn, replayed, changed] = ["sign-in.done", "event.replayed", "account.roles-changed"];

test("acts are listed, the newest first, with what they changed and from where", async () => {
  expect(await actionsOf()).toEqual([changed, replayed, signedIn]);
  const { out } = await list();
  expect(out).toContain("roles: viewer → viewer, admin; since: none");
  expect(out).toContain("dashboard, 10.0.0.7");
  expect(out).toContain("event 17");
});

test.each([
  [["--by", "bob"], [changed]],
  [
    ["--by", "ada@example.com"],
    [replayed, signedIn],
  ],
  [["--action", "event.replayed"], [replayed]],
  [["--subject", "event:17"], [replayed]],
  [["--subject", "event:18"], []],
  [["--subject", "account"], [changed]],
  [
    ["--limit", "2"],
    [changed, replayed],
  ],
  [["--since", "2999-01-01T00:00:00Z"], []],
  [["--since", "2000-01-01T00:00:00Z", "--by", "bob"], [changed]],
])("%j finds %j", async (args, actions) => {
  expect(await actionsOf(...args)).toEqual(actions);
});

test("says so where nobody did any of it, and what is no subject or time", async () => {
  expect((await list("--by", "nobody")).out).toBe("No act matches.\n");
  expect(String((await list("--subject", ":17")).error)).toContain("such as event:17");
  expect(String((await list("--since", "yesterday")).error)).toContain("2026-");
});
