import type { Knex } from "knex";
import { type DashboardOptions, type RunningDashboard, startDashboard } from "../app/dashboard/server.ts";
import { type OidcSignIn, createOidcSignIn } from "../app/people/oidc.ts";
import { createSignIn } from "../app/people/sign-in.ts";
import type { ProxySettings } from "../app/people/proxy.ts";
import { accountOfOwner, createSignInLink } from "../app/people/sign-in-links.ts";
import { createDatabase, useOfKnex } from "../platform/postgres/pool.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import type { Runtime } from "../app/runtime.ts";
import type { ServiceLocation } from "../app/answers.ts";
import type { PageGroup } from "../app/dashboard/page-group.ts";
import { adminPages } from "../app/dashboard/pages/admin/admin-pages.ts";
import { docsPages } from "../app/dashboard/pages/docs/docs-pages.ts";
import { homePages } from "../app/dashboard/pages/home/home-routes.ts";
import { mePages } from "../app/dashboard/pages/me/me-routes.ts";
import { type SignIns, signInPages } from "../app/dashboard/pages/sign-in/sign-in-routes.ts";

/** Small and with short time limits, so that pages slow no other work. */
const pool = { max: 4, statementTimeoutMs: 3_000 };

export interface DashboardRole {
  /** The service for the pages. Default: from the settings. */
  service?: ServiceLocation | undefined;
  /** Called for each answered request. */
  onAnswered?: DashboardOptions["onAnswered"];
}

/** Serves the dashboard until the runtime ends. Throws `ConfigurationError` when it cannot listen. */
export async function runDashboard(
  runtime: Runtime,
  { service, onAnswered }: DashboardRole = {},
): Promise<RunningDashboard> {
  const { config, log, wallClock: clock, serviceClock } = runtime;
  const db = await openPool(runtime);
  const own = createSignIn({ db, clock, encryption: runtime.encryption });
  const oidc = oidcSignIn(runtime, db);
  const dashboard = await startDashboard(
    { db, clock, serviceClock, timeZone: config.timeZone, log },
    await pageGroups(runtime, { own, oidc }, service),
    {
      onAnswered,
      listen: {
        host: config.dashboard.host,
        port: config.dashboard.port,
        hostVariable: "DASHBOARD_HOST",
        portVariable: "DASHBOARD_PORT",
      },
      publicUrl: config.dashboard.publicUrl,
      proxies: config.dashboard.proxies,
      proxySignIn: proxySignInOf(runtime),
      banner: config.service.kind === "sandbox" ? "This is the sandbox: no real service, no real money." : null,
    },
  );
  runtime.onClose(() => dashboard.close());
  return dashboard;
}

/** The order of pages within their areas, and of cards; what is not named here comes before the last. */
const order = [
  "/dunning",
  "/chargebacks",
  "/reports",
  "/events",
  "/objects",
  "/reconciliation",
  "/deliveries",
  "/endpoint",
  "/handlers",
  "/alerts",
];

/** Every page of the dashboard: those of the parts, and those that are always there. */
export async function pageGroups(
  runtime: Runtime,
  signIns: SignIns,
  service?: ServiceLocation,
): Promise<readonly PageGroup[]> {
  const found = await Promise.all(runtime.parts.map(async (part) => (await part.pages?.(runtime, service)) ?? []));
  const rank = ({ place }: PageGroup): number => {
    const n = order.indexOf(place?.path ?? "");
    return n < 0 ? order.length : n;
  };
  const groups = [...found.flat().toSorted((one, other) => rank(one) - rank(other)), docsPages, adminPagesOf(runtime)];
  return [signInPages(signIns), mePages, homePages(groups, runtime.ask), ...groups];
}

/**
 * The checks are loaded at the first request for them. They use the runtime's own connections, without the pages'
 * limit.
 */
const adminPagesOf = (runtime: Runtime): PageGroup =>
  adminPages({
    url: runtime.config.dashboard.publicUrl ?? `http://127.0.0.1:${runtime.config.dashboard.port}`,
    settings: runtime.settings,
    examine: async () => (await import("./cli/doctor/doctor.ts")).examine(runtime),
  });

function proxySignInOf({ config, secrets }: Runtime): ProxySettings | null {
  const { proxySignIn } = config.dashboard;
  const { proxySecret: secret } = secrets;
  return proxySignIn === null || secret === null ? null : { ...proxySignIn, secret };
}

/** Null where the company's sign-in is not set up. */
function oidcSignIn({ config, secrets, wallClock: clock }: Runtime, db: Knex): OidcSignIn | null {
  const { oidc, publicUrl, port } = config.dashboard;
  if (oidc === null || secrets.oidcClientSecret === null) return null;
  return createOidcSignIn(
    { db, clock },
    {
      ...oidc,
      clientSecret: secrets.oidcClientSecret,
      rolesByGroup: new Map(Object.entries(oidc.rolesByGroup)),
      publicUrl: publicUrl ?? `http://127.0.0.1:${port}`,
    },
  );
}

/** A link that signs the owner of this machine in once, with every role. */
export async function ownersLink(runtime: Runtime, url: string): Promise<string> {
  const db = await runtime.db();
  const token = await inTransaction(db, async (trx) => {
    const account = await accountOfOwner(trx);
    return createSignInLink(trx, account.id, runtime.wallClock.now());
  });
  return `${url}/sign-in/link?token=${token}`;
}

async function openPool(runtime: Runtime): Promise<Knex> {
  const { log, secrets } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax: pool.max,
    statementTimeoutMs: pool.statementTimeoutMs,
    applicationName: "tallyhook dashboard",
    log,
  });
  runtime.onClose(() => db.destroy());
  runtime.watchPool("dashboard", () => useOfKnex(db));
  return db;
}
