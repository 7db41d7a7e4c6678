import type { Knex } from "knex";
import type { PageGroup } from "../../src/app/dashboard/page-group.ts";

/** Finds a record of the filled database, and gives back the address of its page. */
type Sample = (db: Knex) => Promise<string>;

/**
 * A real address for each route with a part to fill in, or that needs to be asked for something, by its path.
 * `page-samples.test.ts` fails for a route that has none. Forms (POST) take their parts from the page whose path theirs
 * begins with.
 */
const pageSamples: Readonly<Record<string, Sample>> = {
  "/admin/users/:id": async (db) => `/admin/users/${await newest(db, "people.accounts", "id")}`,
  "/admin/sessions/:id/end": async (db) => `/admin/sessions/${await newest(db, "people.sessions", "id")}/end`,
  "/chargebacks/:id": async (db) => `/chargebacks/${await newest(db, "mirror.chargebacks", "key")}`,
  "/docs/:page": async () => "/docs/runbooks",
  "/dunning/:id": async (db) =>
    `/dunning/${await newest(db, "alerts.alerts", "order_id", { rule: "dunning_renewal" })}`,
  "/events/:seq": async (db) => `/events/${await newest(db, "inbox.events", "seq")}`,
  "/events/replay/confirm": async (db) => `/events/replay/confirm?seq=${await newest(db, "inbox.events", "seq")}`,
  "/endpoint/:id/rotate/confirm": async (db) =>
    `/endpoint/${await newest(db, "reconcile.endpoints", "id")}/rotate/confirm`,
  "/endpoint/:id/rotate": async (db) => `/endpoint/${await newest(db, "reconcile.endpoints", "id")}/rotate`,
  "/endpoint/:id/test": async (db) => `/endpoint/${await newest(db, "reconcile.endpoints", "id")}/test`,
  "/reconciliation/runs/:id": async (db) => `/reconciliation/runs/${await newest(db, "reconcile.runs", "id")}`,
  "/reconciliation/findings/:id": async (db) =>
    `/reconciliation/findings/${await newest(db, "reconcile.findings", "id", { state: "open" })}`,
  "/reconciliation/heal/:resource/:id": async (db) =>
    `/reconciliation/heal/order/${await newest(db, "mirror.orders", "id")}`,
  "/reconciliation/orders/:order/withdraw": async () => "/reconciliation/orders/1/withdraw",
  "/reports/:name": async () => "/reports/month-end?from=2026-10-01&to=2026-10-31",
  "/reports/:name/download": async () => "/reports/month-end/download?from=2026-10-01&to=2026-10-31&format=csv",
  "/reports/close/:month": async () => "/reports/close/2026-10",
  "/reports/close/:month/bundle": async () => "/reports/close/2026-09/bundle",
  "/reports/close/:month/approve": async () => "/reports/close/2026-10/approve",
  "/alerts/:id": async (db) => `/alerts/${await newest(db, "alerts.alerts", "id")}`,
  "/alerts/:id/messages/:message/resend": async (db) => {
    const [{ id, alert_id }] = await db("alerts.outbox")
      .whereNotNull("alert_id")
      .orderBy("id", "desc")
      .limit(1)
      .select("id", "alert_id");
    return `/alerts/${alert_id}/messages/${id}/resend`;
  },
  "/alerts/silences/:silence/end": async (db) => `/alerts/silences/${await newest(db, "alerts.silences", "id")}/end`,
  "/handlers/:recipient": async () => "/handlers/receipts",
  "/handlers/:recipient/runs/:seq/skip": async () => "/handlers/receipts/runs/1/skip",
  "/handlers/:recipient/runs/:seq/retry": async () => "/handlers/receipts/runs/1/retry",
  "/objects/chargeback/:id": async (db) => `/objects/chargeback/${await newest(db, "mirror.chargebacks", "key")}`,
  "/objects/:resource/:id": async (db) => `/objects/order/${await newest(db, "mirror.orders", "id")}`,
  "/objects/:resource/:id/:relation": async (db) =>
    `/objects/customer/${await newest(db, "mirror.orders", "customer_id")}/orders`,
  "/me/sessions/:id/end": async (db) => `/me/sessions/${await newest(db, "people.sessions", "id")}/end`,
};

/** Addresses under which a page looks different by what is asked of it, such as by a filter or another state. */
const moreSamples: readonly Sample[] = [
  async () => "/reports/month-end?from=2026-09",
  async () => "/reports/exceptions?from=2026-10",
  async () => "/reports/close/2026-09",
  async () => "/reports/close/2030-01",
  async () => "/events?state=dead",
  async () => "/reconciliation?month=2026-10",
  async () => "/reconciliation/findings?state=any",
  async () => "/events?type=none.such",
  async () => "/admin/audit?kind=account",
  async () => "/admin/audit?by=nobody",
  async () => "/events/replay/confirm?all=yes&state=dead",
  async () => "/alerts?state=all",
  async () => "/alerts?state=silenced",
  async () => "/alerts?object=none",
  async () => "/handlers/receipts?state=dead",
  async () => "/handlers/ledger",
  async () => "/admin/users/ned@example.com",
  async () => "/handlers/warehouse?state=failed",
  async (db) => `/objects/order/${await newest(db, "mirror.orders", "id")}?stop=1`,
  async (db) => `/objects/transaction/${await newest(db, "mirror.transactions", "id")}`,
  async (db) => `/objects/subscription/${await newest(db, "mirror.subscriptions", "id")}`,
  async (db) => `/objects/customer/${await newest(db, "mirror.customers", "id")}`,
  async (db) => `/events/${await newest(db, "inbox.events", "seq", { state: "dead" })}`,
];

/** The highest value of a column, of the rows where all of `where` is so. */
async function newest(
  db: Knex,
  table: string,
  column: string,
  where: Readonly<Record<string, string>> = {},
): Promise<string> {
  const [found] = await db(table).where(where).orderBy(column, "desc").limit(1).pluck(column);
  if (found === undefined) {
    throw new Error(`no ${table} with ${JSON.stringify(where)}: add one to fill-database.ts`);
  }
  return encodeURIComponent(String(found));
}

export interface SampledRoute {
  method: "GET" | "POST";
  path: string;
  access: string;
  /** Null: nothing says how to fill in the parts of its path. */
  address: string | null;
}

/** Every route of the groups with an address on the filled database. */
export async function sampleRoutes(db: Knex, groups: readonly PageGroup[]): Promise<SampledRoute[]> {
  const addresses = new Map<string, string>();
  for (const [path, sample] of Object.entries(pageSamples)) {
    addresses.set(shapeOf(path), await sample(db));
  }
  return groups
    .flatMap(({ routes }) => routes)
    .map(({ method, path, access }) => ({
      method,
      path,
      access,
      address: addresses.get(shapeOf(path)) ?? filledIn(path, addresses),
    }));
}

/** Addresses of all pages for those who are signed in. */
export async function sampleAddresses(db: Knex, groups: readonly PageGroup[]): Promise<string[]> {
  const routes = await sampleRoutes(db, groups);
  const pages = routes.flatMap(({ method, access, address }) =>
    method === "GET" && access !== "anyone" && address !== null ? [address] : [],
  );
  return [...pages, ...(await Promise.all(moreSamples.map((sample) => sample(db))))];
}

/** Of these addresses those that answer with a page, not with a file. */
export async function pagesAmong(
  addresses: readonly string[],
  ask: (address: string) => Promise<Response>,
): Promise<string[]> {
  const pages: string[] = [];
  for (const address of addresses) {
    const answer = await ask(address);
    await answer.body?.cancel();
    if (answer.headers.get("content-type")?.startsWith("text/html") === true) pages.push(address);
  }
  return pages;
}

/** A form may call a part of the path otherwise than its page does. Pure. */
const shapeOf = (path: string): string => path.replaceAll(/:\w+/g, ":");

/** By the address of the longest path that this one begins with; null where a part is missing in it. Pure. */
function filledIn(path: string, known: ReadonlyMap<string, string>): string | null {
  const shape = shapeOf(path);
  const [, address = ""] =
    [...known]
      .filter(([other]) => shape.startsWith(`${other}/`))
      .toSorted(([one], [two]) => two.length - one.length)[0] ?? [];
  const given = address.split("?", 1)[0]?.split("/") ?? [];
  const segments = shape.split("/").map((part, n) => (part === ":" ? (given[n] ?? null) : part));
  return segments.includes(null) ? null : segments.join("/");
}
