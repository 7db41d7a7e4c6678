import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { permissionsOf, roleNames } from "../../src/app/people/permissions.ts";
import { createAccount, requireAccount } from "../../src/app/people/accounts.ts";
import { createSignInLink } from "../../src/app/people/sign-in-links.ts";
import { hashPassword } from "../../src/app/people/password.ts";
import { openConnection } from "../receiver/raw-http.ts";
import { type DashboardStand, cookieOf, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { useFilledDatabase } from "./filled-database.ts";
import { type SampledRoute, sampleRoutes } from "./page-samples.ts";

const database = useFilledDatabase();
const [email, password] = ["eve@example.com", "four words do not belong"];
let dashboard: DashboardStand;
let routes: SampledRoute[];

beforeAll(async () => {
  dashboard = await openDashboard(database, { service: database.service });
  await signedIn(database.db, ["viewer"]);
  routes = await sampleRoutes(database.db, dashboard.groups);
  const passwordHash = await hashPassword(password);
  await database.db.transaction((trx) => createAccount(trx, { email, roles: ["viewer"], passwordHash }));
});
afterAll(() => dashboard.close());

const lastAct = async (): Promise<number> =>
  Number((await database.db("people.audit").max<{ max: string }[]>("id as max"))[0]?.max ?? 0);

const raw = () => openConnection(Number(new URL(dashboard.url).port));

describe("a hand-made address", () => {
  test.each(roleNames)("of something real lets the role %s do nothing that is not theirs", async (role) => {
    const { cookie } = await signedIn(database.db, [role]);
    const may = permissionsOf([role]);
    const before = await lastAct();
    for (const { method, path, access, address } of routes) {
      if (access === "anyone" || access === "signed-in" || may.has(access as never)) continue;
      const form = method === "POST" ? { form: { "decided-on": "1" } } : {};
      const { status } = await send(`${dashboard.url}${address}`, { cookie, ...form });
      expect([`${method} ${path}`, status]).toEqual([`${method} ${path}`, 403]);
    }
    expect(await lastAct()).toBe(before);
  });

  test("makes no error of the program, whatever its parts are", async () => {
    const { cookie } = await signedIn(database.db, roleNames);
    const failed: unknown[] = [];
    for (const { method, path } of routes) {
      if (!path.includes(":")) continue;
      for (const part of oddParts) {
        const address = path.replaceAll(/:\w+/g, part);
        const form = method === "POST" ? { form: {} } : {};
        const { status } = await send(`${dashboard.url}${address}`, { cookie, ...form });
        if (status >= 500) failed.push({ method, address: address.slice(0, 80), status });
      }
    }
    expect(failed).toEqual([]);
  });

  test("makes no error of the program, whatever is asked of a list", async () => {
    const { cookie } = await signedIn(database.db, roleNames);
    const failed: unknown[] = [];
    for (const { method, access, address } of routes) {
      if (method !== "GET" || access === "anyone" || address === null) continue;
      const page = await (await send(`${dashboard.url}${address}`, { cookie })).text();
      const names = new Set([...page.matchAll(/\sname="([\w.-]+)"/g)].map(([, name]) => name));
      for (const odd of ["%00", "9".repeat(30), "%F0%9F%92%A5'--", "0001-01-01"]) {
        const query = [...names, "before", "after", "as-of"].map((name) => `${name}=${odd}`);
        const asked = `${address.split("?", 1)[0]}?${query.join("&")}`;
        const { status } = await send(`${dashboard.url}${asked}`, { cookie });
        if (status >= 500) failed.push({ asked, status });
      }
    }
    expect(failed).toEqual([]);
  });
});

const oddParts = [
  "0",
  "9".repeat(40),
  "x".repeat(3_000),
  "%00",
  "%2e%2e%2f%2e%2e%2fetc",
  "%F0%9F%92%A5",
  "a'--",
  "2026-99",
  "__proto__",
];

test("only the ways to sign in are open to anyone", () => {
  const open = routes.filter(({ access }) => access === "anyone").map(({ path }) => path);
  expect(open.filter((path) => !/^\/sign-in(\/|$)/.test(path))).toEqual([]);
});

describe("a method", () => {
  test.each(["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "%s is refused on every page, and does nothing",
    async (method) => {
      const { cookie } = await signedIn(database.db, roleNames);
      const before = await lastAct();
      for (const { address } of routes) {
        const answer = await fetch(`${dashboard.url}${address}`, {
          method,
          redirect: "manual",
          headers: { cookie, "sec-fetch-site": "same-origin" },
        });
        expect([address, answer.status, answer.headers.get("allow")]).toEqual([address, 405, "GET, POST"]);
      }
      expect(await lastAct()).toBe(before);
    },
  );

  test("in a header or a field of a form is not heard", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const headers = { "x-http-method-override": "POST" };
    const answer = await send(`${dashboard.url}/sign-out?_method=POST`, { cookie, headers });
    expect(answer.status).toBe(404);
    expect((await send(`${dashboard.url}/me`, { cookie })).status).toBe(200);
  });
});

describe("a link that signs in", () => {
  const link = async (): Promise<string> => {
    const { id } = await requireAccount(database.db, email);
    const token = await database.db.transaction((trx) => createSignInLink(trx, id, dashboard.clock.now()));
    return `${dashboard.url}/sign-in/link?token=${token}`;
  };

  test.each([
    ["a program that looks at links in messages", { "sec-fetch-site": "" }],
    ["a link on another site, which may be somebody else's", { "sec-fetch-site": "cross-site" }],
  ])("signs nobody in by %s, until a person presses the button", async (_, headers) => {
    const address = await link();
    const looked = await send(address, { headers });
    expect([looked.status, cookieOf(looked)]).toEqual([200, null]);
    const token = new URL(address).searchParams.get("token") ?? "";
    const pressed = await send(`${dashboard.url}/sign-in/link`, { form: { token } });
    expect([pressed.status, cookieOf(pressed) !== null]).toEqual([303, true]);
    const again = await send(`${dashboard.url}/sign-in/link`, { form: { token } });
    expect([again.status, cookieOf(again)]).toEqual([403, null]);
  });

  test("signs in at once by the address bar, as from a terminal", async () => {
    const answer = await send(await link(), { headers: { "sec-fetch-site": "none" } });
    expect([answer.status, cookieOf(answer) !== null]).toEqual([303, true]);
  });
});

describe("guessing passwords", () => {
  const signIn = (fields: Record<string, string> = {}) =>
    send(`${dashboard.url}/sign-in`, { form: { email, password, ...fields } });

  test("is stopped for an account, also when each guess comes from another address", async () => {
    const behind = await openDashboard(database, { proxies: 1 });
    const guess = (from: string) =>
      send(`${behind.url}/sign-in`, {
        form: { email, password: "a wrong one" },
        headers: { "x-forwarded-for": `6.6.6.6, ${from}` },
      });
    const first = await guess("198.51.100.1");
    // As if it had failed so often: checking a password takes time by design.
    await database.db("people.attempts").whereLike("key", "account:%").increment("points", 9);
    const last = await guess("198.51.100.2");
    await behind.close();
    expect([first.status, last.status]).toEqual([401, 429]);
  });

  test("is stopped for a whole network of IPv6 addresses, which are one person's to choose from", async () => {
    const behind = await openDashboard(database, { proxies: 1 });
    const guess = async (from: string) => {
      const form = { email: `${from.length}@example.com`, password: "a wrong one" };
      const headers = { "x-forwarded-for": from };
      return (await send(`${behind.url}/sign-in`, { form, headers })).status;
    };
    await database.db("people.attempts").delete();
    const first = await guess("2001:db8:1:2::1");
    await database.db("people.attempts").whereLike("key", "address:%").increment("points", 29);
    const others = [
      await guess("2001:DB8:1:2:ffff:abcd:0:1"),
      await guess("[2001:db8:1:2::3]:4711"),
      await guess("2001:db8:1:3::1"),
      await guess("::ffff:198.51.100.1"),
    ];
    await database.db("people.attempts").whereLike("key", "address:%").increment("points", 29);
    const same = await guess("198.51.100.1:5200");
    await behind.close();
    await database.db("people.attempts").delete();
    expect([first, ...others, same]).toEqual([401, 429, 429, 401, 401, 429]);
  });

  test("does not stop colleagues behind one address who get theirs right", async () => {
    await database.db("people.attempts").delete();
    expect((await signIn()).status).toBe(303);
    const { rows } = await database.db.raw("select key, points from people.attempts where points > 0");
    expect(rows).toEqual([]);
  });
});

test.each([
  "//evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "https:evil.example",
  "https://evil.example",
  "/%2f/evil.example",
  "/%5cevil.example",
  "/.//evil.example",
  "/\t/evil.example",
  "\t//evil.example",
  "/\n/evil.example",
  "javascript:alert(1)",
  "data:text/html,x",
  "/\u2028/evil.example",
  "http:///evil.example",
  "/@evil.example",
])("a sign-in leads to no other site by %j", async (next) => {
  const { token } = await database.db.transaction(async (trx) => {
    const { id } = await requireAccount(trx, email);
    return { token: await createSignInLink(trx, id, dashboard.clock.now()) };
  });
  const cookie = cookieOf(await send(`${dashboard.url}/sign-in/link?token=${token}`)) ?? "";
  const asked = await send(`${dashboard.url}/sign-in?next=${encodeURIComponent(next)}`, { cookie });
  const leads = asked.headers.get("location") ?? "";
  expect([asked.status, new URL(leads, dashboard.url).origin]).toEqual([303, dashboard.url]);
});

describe("what is no proper request", () => {
  const refused: [string, string][] = [
    ["two lengths", "POST /sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 30\r\n\r\nabc"],
    [
      "a length and chunks",
      "POST /sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "chunks by another name",
      "POST /sign-in HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    ],
    ["a space before the colon", "GET / HTTP/1.1\r\nhost : localhost\r\n\r\n"],
    ["no host", "GET /sign-in HTTP/1.1\r\n\r\n"],
    ["two hosts", "GET /sign-in HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n"],
    ["a line end in a header", "GET / HTTP/1.1\r\nhost: localhost\r\nx: a\rb\r\n\r\n"],
    ["a method that there is not", "BREW / HTTP/1.1\r\nhost: localhost\r\n\r\n"],
    ["an address longer than any page's", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`],
    [
      "a cookie larger than any of ours",
      `GET /sign-in HTTP/1.1\r\nhost: localhost\r\ncookie: tallyhook=${"x".repeat(20_000)}\r\n\r\n`,
    ],
  ];
  test.each(refused)("is refused: %s", async (_, sent) => {
    const connection = await raw();
    connection.write(sent);
    const answer = await connection.answer();
    expect(answer?.status).toBeGreaterThanOrEqual(400);
    expect(answer?.status).toBeLessThan(500);
    connection.destroy();
    expect((await send(`${dashboard.url}/sign-in`)).status).toBe(200);
  });

  test("does not hold a connection that sends its headers drop by drop", async () => {
    const connection = await raw();
    connection.write("GET /sign-in HTTP/1.1\r\nhost: localhost\r\nx-a: ");
    const drops = setInterval(() => connection.write("b"), 500);
    const begun = performance.now();
    await connection.closed;
    clearInterval(drops);
    expect(performance.now() - begun).toBeLessThan(25_000);
  });
});

test("the dashboard's name is not taken from a proxy's header where there is no proxy", async () => {
  const connection = await raw();
  connection.write(
    "GET /sign-in HTTP/1.1\r\nhost: rebound.example\r\nx-forwarded-host: localhost\r\nconnection: close\r\n\r\n",
  );
  expect((await connection.answer())?.status).toBe(421);
  connection.destroy();
});

describe("behind a proxy, the dashboard's name", () => {
  const status = async (headers: string, publicUrl: string | null) => {
    const behind = await openDashboard(database, { proxies: 1, publicUrl });
    const connection = await openConnection(Number(new URL(behind.url).port));
    connection.write(`GET /sign-in HTTP/1.1\r\n${headers}\r\nconnection: close\r\n\r\n`);
    const answer = await connection.answer();
    connection.destroy();
    await behind.close();
    return answer?.status;
  };

  test.each([
    ["host: rebound.example\r\nx-forwarded-host: localhost", null],
    ["host: rebound.example\r\nx-forwarded-host: 127.0.0.1:8788", "https://ops.example.com"],
    ["host: localhost\r\nx-forwarded-host: rebound.example", "https://ops.example.com"],
    ["host: localhost\r\nx-forwarded-host: rebound.example, ops.example.com", "https://ops.example.com"],
  ])("is not what a client makes the proxy hand on: %j of %s", async (headers, publicUrl) => {
    expect(await status(headers, publicUrl)).toBe(421);
  });

  test.each([
    ["host: dashboard:8788\r\nx-forwarded-host: ops.example.com", "https://ops.example.com"],
    ["host: ops.example.com", "https://ops.example.com"],
    ["host: localhost", null],
  ])("is the public address, or this machine's own: %j of %s", async (headers, publicUrl) => {
    expect(await status(headers, publicUrl)).toBe(200);
  });
});

test("a notice that somebody planted in a cookie is text, and stands there once", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const planted = `tallyhook-notice=${encodeURIComponent("<script>alert(1)</script>")}`;
  const answer = await send(`${dashboard.url}/me`, { cookie: `${cookie}; ${planted}` });
  expect(await answer.text()).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  expect(answer.headers.getSetCookie().join()).toContain("tallyhook-notice=; Max-Age=0");
});

test("pages that hang are answered up to a number, and people can still sign in and out", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const lock = await database.db.transaction();
  await lock.raw("lock table people.sessions in access exclusive mode");
  const asked = Array.from({ length: 30 }, () => send(`${dashboard.url}/me`, { cookie }));
  const refused = await Promise.race([
    // Those that hang are answered once the lock is gone.
    Promise.all(asked).then(() => null),
    Promise.any(
      asked.map(async (each) => {
        const answer = await each;
        if (answer.status !== 503) throw new Error(`it was ${answer.status}`);
        return answer;
      }),
    ),
  ]);
  const signIn = await send(`${dashboard.url}/sign-in`);
  await lock.rollback();
  expect(refused?.headers.get("retry-after")).toBe("5");
  expect(signIn.status).toBe(200);
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 503)).toHaveLength(6);
  expect((await send(`${dashboard.url}/me`, { cookie })).status).toBe(200);
});

test("forms that arrive drop by drop keep nobody else from a page", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const slow = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const connection = await raw();
      connection.write(
        `POST /me/theme HTTP/1.1\r\nhost: localhost\r\ncookie: ${cookie}\r\nsec-fetch-site: same-origin\r\n` +
          "content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n",
      );
      // The dashboard has read the headers, and waits for the rest.
      await connection.answer();
      return connection;
    }),
  );
  const { status } = await send(`${dashboard.url}/me`, { cookie });
  for (const connection of slow) connection.destroy();
  expect(status).toBe(200);
});

test("a null character in a form or an address is refused, since no column can hold it", async () => {
  const { cookie } = await signedIn(database.db, roleNames);
  expect((await send(`${dashboard.url}/events?type=%00`, { cookie })).status).toBe(400);
  const form = { email: "a\0@example.com", password: "x", next: "/" };
  expect((await send(`${dashboard.url}/sign-in`, { form })).status).toBe(400);
});
