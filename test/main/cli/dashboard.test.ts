import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, expect, test } from "vitest";
import { cookieOf, send } from "../../dashboard/dashboard-stand.ts";
import { type Program, killPrograms, runTallyhook } from "../../e2e/program.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();
afterAll(killPrograms);
afterEach(killPrograms);

const dashboard = (environment: Readonly<Record<string, string>> = {}, ...args: string[]): Program =>
  runTallyhook(["dashboard", ...args], {
    DATABASE_URL: database.url,
    DASHBOARD_PORT: "0",
    ...environment,
  });

test("serves until Ctrl-C, and its link signs the owner of the machine in once, with every role", async () => {
  const program = dashboard({}, "--sign-in");
  await program.printed("/sign-in/link?token=");
  await program.printed("\n", 1_000);
  const link = /http:\/\/127\.0\.0\.1:\d+\/sign-in\/link\?token=[\w-]{43}/.exec(program.output())?.[0];
  const typed = { headers: { "sec-fetch-site": "none" } };
  const answer = await send(link ?? "", typed);
  const cookie = cookieOf(answer) ?? "";
  const { origin } = new URL(link ?? "");
  expect((await send(`${origin}/admin/audit`, { cookie })).status).toBe(200);
  expect((await send(link ?? "", typed)).status).toBe(403);
  program.signalGroup("SIGINT");
  expect(await program.exited).toEqual({ code: 0, signal: null });
  expect(program.output()).toContain("the dashboard stops");
  await expect(fetch(origin)).rejects.toThrow();
});

test.each([
  [{}, "PUBLIC_DASHBOARD_URL has no https"],
  [{ PUBLIC_DASHBOARD_URL: "http://tallyhook.example.com" }, "PUBLIC_DASHBOARD_URL has no https"],
])("refuses to listen beyond loopback without https, with %j", async (settings, reason) => {
  const program = dashboard({ DASHBOARD_HOST: "0.0.0.0", ...settings });
  expect(await program.exited).toEqual({ code: 2, signal: null });
  expect(program.output()).toContain(reason);
});

test("says whose setting to change where its port is taken", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => void other.once("listening", resolve));
  const port = String((other.address() as AddressInfo).port);
  const program = dashboard({ DASHBOARD_PORT: port });
  expect(await program.exited).toEqual({ code: 2, signal: null });
  expect(program.output()).toContain("DASHBOARD_PORT");
  other.close();
});
