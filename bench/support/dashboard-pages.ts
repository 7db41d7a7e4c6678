import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { PageGroup } from "../../src/app/dashboard/page-group.ts";
import { createAccount } from "../../src/app/people/accounts.ts";
import { type Role, roleNames } from "../../src/app/people/permissions.ts";
import { beginSession } from "../../src/app/people/sessions.ts";
import { pagesAmong, sampleAddresses } from "../../test/dashboard/page-samples.ts";
import { meterSeconds } from "./cpu-meter.ts";
import { filledYear } from "./year.ts";

/** The work that a page waits for: its own queries, a whole report, or an answer of the service. */
export type PageKind = "page" | "report" | "service";

export interface MeasuredPage {
  address: string;
  kind: PageKind;
  /** From the request to the last byte, in ms, by all roles with access. */
  times: number[];
  /** For one request, in ms. */
  cpuMs: Readonly<Record<string, number>>;
}

/** The p95 limit of a page. */
export const limitsMs = { page: 100, report: 5_000 } as const;

/** NaN of none. */
export function p95Of(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN;
}

/** Searches that no index answers alone, and lists without the filter that keeps them short. */
const searches = [
  "/events?type=none.such",
  "/events?type=customer.created",
  "/events?state=failed",
  "/events?state=applied",
  "/events?state=stale",
  `/events?from=${filledYear}-06-01&until=${filledYear}-06-02`,
  `/events?type=none.such&from=${filledYear}-06-01`,
  "/alerts?state=all&severity=error",
  "/alerts?severity=critical",
  "/alerts?state=all&rule=chargeback",
  "/reconciliation/findings?severity=warning",
  "/reconciliation/findings?state=any&severity=high",
  "/reconciliation/findings?state=any&class=identity",
  "/chargebacks?show=ended",
  "/admin/audit?by=person-7@example.com",
];

/** Searches of the field at the head of every page, which a form sends. */
const search = "/objects/search?q=";
const typed = ["4242", "00000777", "buyer-9@example.com", "buyer-9@", "Frances Salenton", "Salenton", "Smith", "sm"];

/** The addresses of all pages of these kinds on a grown database. */
export async function pagesOf(
  db: Knex,
  groups: readonly PageGroup[],
  dashboard: { url: string; cookie: string },
  kinds: readonly PageKind[],
): Promise<string[]> {
  const samples = await sampleAddresses(db, groups);
  // They name months of the other filled database.
  const addresses = samples.map((address) => address.replace(/=2026-/g, `=${filledYear}-`));
  const asked = [...new Set([...addresses, ...searches])].filter((address) => kinds.includes(kindOf(address)));
  const pages = await pagesAmong(asked, (address) =>
    fetch(`${dashboard.url}${address}`, { headers: headersOf(dashboard) }),
  );
  return kinds.includes("page") ? [...pages, ...typed.map((text) => search + encodeURIComponent(text))] : pages;
}

/** Signs in a person with these roles and returns the cookie. */
export async function signIn(db: Knex, roles: readonly Role[], now: Date): Promise<string> {
  return db.transaction(async (trx) => {
    const email = `${randomUUID()}@example.com`;
    const { id } = await createAccount(trx, { email, roles, passwordHash: null });
    const token = await beginSession(trx, {
      accountId: id,
      method: "link",
      address: "127.0.0.1",
      userAgent: "bench",
      replaces: null,
      now,
    });
    return `tallyhook=${token}`;
  });
}

/** 303: a search found one object; 503: a page's own time limit ended it. */
const answered: ReadonlySet<number> = new Set([200, 303, 503]);

/** Loads each page `times` times for each role that may see it, one after the other. */
export async function measurePages(
  db: Knex,
  { url, pids }: { url: string; pids: Readonly<Record<string, number>> },
  {
    addresses,
    times,
    now,
    say,
  }: {
    addresses: readonly string[];
    times: number;
    now: Date;
    say: (line: string) => void;
  },
): Promise<MeasuredPage[]> {
  const cookies = await Promise.all(roleNames.map((role) => signIn(db, [role], now)));
  const measured: MeasuredPage[] = [];
  for (const address of addresses) {
    const load = (cookie: string) => loadPage(`${url}${address}`, cookie);
    const seen: string[] = [];
    for (const cookie of cookies) if (answered.has((await load(cookie)).status)) seen.push(cookie);
    const [meter, taken] = [meterSeconds(pids), [] as number[]];
    for (let n = 0; n < times; n++) {
      for (const cookie of seen) {
        const { status, ms } = await load(cookie);
        // A page that its own time limit ended took at least this long.
        if (!answered.has(status)) throw new Error(`${address} was answered ${status}`);
        taken.push(ms);
      }
    }
    const cpuMs = Object.fromEntries(Object.entries(meter()).map(([name, s]) => [name, (s * 1_000) / taken.length]));
    // What no role but all of them together may see, or what has changed since it was listed.
    if (taken.length === 0) continue;
    measured.push({ address, kind: kindOf(address), times: taken, cpuMs });
    say(`${address}: p95 ${p95Of(taken).toFixed(0)} ms`);
  }
  return measured;
}

export async function loadPage(url: string, cookie: string): Promise<{ status: number; ms: number }> {
  const startMs = performance.now();
  const { pathname, origin, searchParams } = new URL(url);
  const headers = headersOf({ cookie });
  const answer = search.startsWith(`${pathname}?`)
    ? await fetch(`${origin}${pathname}`, { redirect: "manual", headers, method: "POST", body: searchParams })
    : await fetch(url, { redirect: "manual", headers });
  await answer.arrayBuffer();
  return { status: answer.status, ms: performance.now() - startMs };
}

const headersOf = ({ cookie }: { cookie: string }) => ({
  cookie,
  "sec-fetch-site": "same-origin",
});

export function kindOf(address: string): PageKind {
  if (/^\/reports\/(?!close\/)[^/]+(\?|\/)/.test(address)) return "report";
  return /^\/(endpoint|reconciliation\/heal)(\/|\?|$)/.test(address) ? "service" : "page";
}
