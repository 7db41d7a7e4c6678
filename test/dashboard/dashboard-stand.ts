import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import type { PageGroup } from "../../src/app/dashboard/page-group.ts";
import { type RunningDashboard, startDashboard } from "../../src/app/dashboard/server.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { pageGroups } from "../../src/main/run-dashboard.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { createAccount, findAccount } from "../../src/app/people/accounts.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import type { OidcSignIn } from "../../src/app/people/oidc.ts";
import type { ProxySettings } from "../../src/app/people/proxy.ts";
import { createSignIn } from "../../src/app/people/sign-in.ts";
import { beginSession } from "../../src/app/people/sessions.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { createEncryption } from "../../src/platform/encryption.ts";
import { createLog } from "../../src/platform/log.ts";
import type { TestDatabase } from "../support/database.ts";
import { allParts } from "../../src/main/parts.ts";

/** A clock that tests set. */
export interface SetClock extends Clock {
  set(at: Date): void;
}

function setClock(first: Date): SetClock {
  let now = first;
  return { now: () => now, set: (at) => void (now = at) };
}

export const testEncryption = createEncryption({ current: "ab".repeat(32) });

export interface DashboardStand extends RunningDashboard {
  clock: SetClock;
  groups: readonly PageGroup[];
}

interface StandOptions {
  /** The service that pages ask; default: a sandbox that is not there. */
  service?: { baseUrl: string; apiKey: string };
  /** The service's clock, in milliseconds ahead of the dashboard's. */
  serviceAheadMs?: number;
  banner?: string | null;
  /** More of the environment. */
  settings?: Readonly<Record<string, string>>;
  publicUrl?: string | null;
  proxies?: number;
  oidc?: OidcSignIn | null;
  proxySignIn?: ProxySettings | null;
}

/** The real dashboard on a free port. */
export async function openDashboard(
  { db, environment }: Pick<TestDatabase, "db" | "environment">,
  {
    publicUrl = null,
    proxies = 0,
    oidc = null,
    proxySignIn = null,
    service,
    settings = {},
    serviceAheadMs = 0,
    banner = null,
  }: StandOptions = {},
): Promise<DashboardStand> {
  const clock = setClock(new Date("2026-11-22T12:00:00Z"));
  const log = createLog({ level: "silent", name: "test" });
  const runtime = {
    ...createRuntime(allParts, loadConfig({ ...environment, TALLYHOOK_TIME_ZONE: "UTC", ...settings }), log),
    wallClock: clock,
  };
  const own = createSignIn({ db, clock, encryption: async () => testEncryption });
  const groups = await pageGroups(runtime, { own, oidc }, service);
  const serviceClock: Clock = { now: () => new Date(clock.now().getTime() + serviceAheadMs) };
  const dashboard = await startDashboard({ db, clock, serviceClock, timeZone: "UTC", log }, groups, {
    listen: {
      host: "127.0.0.1",
      port: 0,
      hostVariable: "DASHBOARD_HOST",
      portVariable: "DASHBOARD_PORT",
    },
    publicUrl,
    proxies,
    proxySignIn,
    banner,
  });
  return {
    ...dashboard,
    clock,
    groups,
    async close() {
      await dashboard.close();
      await runtime.close();
    },
  };
}

/** A person with roles, signed in: the cookie to send. */
export async function signedIn(
  db: Knex,
  roles: readonly Role[],
  { now = new Date("2026-11-22T12:00:00Z"), email = `p${randomBytes(4).toString("hex")}@example.com` } = {},
): Promise<{ cookie: string; email: string }> {
  const token = await db.transaction(async (trx) => {
    const known = await findAccount(trx, email);
    const { id } = known ?? (await createAccount(trx, { email, roles, passwordHash: null }));
    return beginSession(trx, {
      accountId: id,
      method: "link",
      address: "127.0.0.1",
      userAgent: "test",
      replaces: null,
      now,
    });
  });
  return { cookie: `tallyhook=${token}`, email };
}

export interface Sent {
  cookie?: string;
  method?: "GET" | "POST" | "HEAD";
  form?: Record<string, string>;
  headers?: Record<string, string>;
}

/** A request as a browser sends it from the dashboard's own page. Redirects are not followed. */
export function send(url: string, { cookie, method, form, headers }: Sent = {}): Promise<Response> {
  return fetch(url, {
    method: method ?? (form === undefined ? "GET" : "POST"),
    redirect: "manual",
    headers: {
      ...(cookie === undefined ? {} : { cookie }),
      "sec-fetch-site": "same-origin",
      ...headers,
    },
    ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
  });
}

/** The session's cookie that an answer sets; null where it sets none. */
export const cookieOf = (answer: Response): string | null =>
  answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(";", 1)[0] ?? "")
    .find((pair) => /^(__Host-)?tallyhook=./.test(pair)) ?? null;
