import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Route } from "../../src/app/dashboard/route.ts";
import { permissionsOf, roleNames } from "../../src/app/people/permissions.ts";
import { openConnection } from "../receiver/raw-http.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let routes: readonly Route[];
/** Signing out would end the session that the other routes use. */
let guarded: readonly Route[];

beforeAll(async () => {
  dashboard = await openDashboard(database, {
    oidc: { begin: never, complete: never },
  });
  routes = dashboard.groups.flatMap((group) => group.routes);
  guarded = routes.filter(({ access, path }) => access !== "anyone" && path !== "/sign-out");
});
afterAll(() => dashboard.close());

const never = () => Promise.reject(new Error("only what routes declare is read"));

const addressOf = (path: string): string => path.replaceAll(/:\w+/g, "0");

describe.each([...roleNames, "no role"] as const)("a person with the role %s", (role) => {
  test("is let in where the route's permission is theirs, and refused by hand-made addresses elsewhere", async () => {
    const roles = role === "no role" ? [] : [role];
    const { cookie } = await signedIn(database.db, roles);
    const may = permissionsOf(roles);
    for (const { method, path, access } of guarded) {
      const form = method === "POST" ? { form: {} } : {};
      const { status } = await send(`${dashboard.url}${addressOf(path)}`, { cookie, ...form });
      const isLetIn = access === "signed-in" || may.has(access as never);
      expect([`${method} ${path}`, status === 403], role).toEqual([`${method} ${path}`, !isLetIn]);
    }
  });
});

test("somebody who is not signed in is sent to sign in, by every route but those for signing in", async () => {
  for (const { method, path } of guarded) {
    const form = method === "POST" ? { form: {} } : {};
    const answer = await send(`${dashboard.url}${addressOf(path)}`, form);
    expect([path, answer.status], path).toEqual([path, 303]);
    expect(answer.headers.get("location")).toMatch(/^\/sign-in/);
  }
});

test("no route reads with POST or changes with GET", () => {
  expect(
    guarded.filter(
      ({ method, path, access }) =>
        method === "GET" &&
        /:(write|replay|heal|run|close|prepare)$/.test(access) &&
        // What is shown before a change is decided on.
        !/\/(preview|confirm)$/.test(path),
    ),
  ).toEqual([]);
});

describe("a request that changes something", () => {
  const forms: [string, Record<string, string>][] = [
    ["another site's page", { "sec-fetch-site": "cross-site" }],
    ["a page of a sister domain", { "sec-fetch-site": "same-site" }],
    ["an address that was typed", { "sec-fetch-site": "none" }],
    ["an old browser on another site", { "sec-fetch-site": "", origin: "https://evil.example" }],
    ["an opaque origin", { "sec-fetch-site": "", origin: "null" }],
    ["nothing that says where from", { "sec-fetch-site": "" }],
  ];
  test.each(forms)("is refused from %s", async (_, headers) => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const address = `${dashboard.url}/me/sessions/end-others`;
    expect((await send(address, { cookie, form: {}, headers })).status).toBe(403);
  });

  test("is taken from an old browser on the dashboard's own page", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const headers = { "sec-fetch-site": "", origin: dashboard.url };
    const address = `${dashboard.url}/me/sessions/end-others`;
    expect((await send(address, { cookie, form: {}, headers })).status).toBe(303);
  });

  test("is taken in pieces, as some proxies hand it on", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const connection = await openConnection(Number(new URL(dashboard.url).port));
    connection.write(
      `POST /me/theme HTTP/1.1\r\nhost: localhost\r\ncookie: ${cookie}\r\nsec-fetch-site: same-origin\r\n` +
        "content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n" +
        "6\r\ntheme=\r\n4\r\ndark\r\n0\r\n\r\n",
    );
    expect((await connection.answer())?.status).toBe(303);
    connection.destroy();
  });

  test("is refused as anything but a form, and where it is too long", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const address = `${dashboard.url}/me/sessions/end-others`;
    const headers = { cookie, "sec-fetch-site": "same-origin" };
    const json = { ...headers, "content-type": "application/json" };
    expect((await fetch(address, { method: "POST", headers: json, body: "{}" })).status).toBe(415);
    expect((await send(address, { cookie, form: { a: "x".repeat(70_000) } })).status).toBe(413);
  });
});

test("the dashboard answers to no name but its own", async () => {
  const { request } = await import("node:http");
  const status = await new Promise((resolve, reject) => {
    const sent = request(`${dashboard.url}/sign-in`, { headers: { host: "rebound.example" } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on("error", reject).end();
  });
  expect(status).toBe(421);
});

test("no page may be framed, kept, or run anything of others", async () => {
  const { headers } = await send(`${dashboard.url}/sign-in`);
  expect(headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  );
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-frame-options")).toBe("DENY");
});

test("no page has script or style of its own in it", async () => {
  const { cookie } = await signedIn(database.db, roleNames);
  for (const { method, path } of routes) {
    if (method !== "GET" || path.includes(":")) continue;
    const page = await (await send(`${dashboard.url}${path}`, { cookie })).text();
    expect(page, path).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
  }
});
