import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Router from "@koa/router";
import Koa, { type Context, type Middleware } from "koa";
import { permissionsOf, roleNames } from "../people/permissions.ts";
import { type ProxySettings, beginProxied, proxiedEmail } from "../people/proxy.ts";
import { type Session, findSession } from "../people/sessions.ts";
import { html } from "../../platform/html.ts";
import { lingerAfterAnswers } from "../../platform/http/linger.ts";
import { type ListenAddress, listen, localAddress } from "../../platform/http/listen.ts";
import { errorCode, isOutage, withRoleAdvice } from "../../platform/postgres/errors.ts";
import { isRetryableConflict } from "../../platform/postgres/transactions.ts";
import { type Assets, readAssets } from "./assets.ts";
import { browserRules, refuseForeign, refuseOtherNames, refuseTooMany, refuseUnsent } from "./browser-rules.ts";
import { durationText } from "../../platform/readable-text.ts";
import { timeText } from "./elements/values.ts";
import { type Cookies, createCookies } from "./cookies.ts";
import { renderPage } from "./layout.ts";
import { type CountReader, createOpenCounts } from "./open-counts.ts";
import type { PageGroup, Place, Search } from "./page-group.ts";
import {
  type PageAnswer,
  type PageDeps,
  PageError,
  type Route,
  type Theme,
  type Visitor,
  ownPath,
  themes,
} from "./route.ts";
import { readForm } from "./read-form.ts";

export interface DashboardOptions {
  listen: ListenAddress;
  /** The address at which people reach it, where a proxy stands before it; null: that of the request. */
  publicUrl: string | null;
  /** The number of proxies that add the peer's address to `X-Forwarded-For`. 0: the peer is the person. */
  proxies: number;
  /** A proxy that has people sign in; null: they sign in here. */
  proxySignIn: ProxySettings | null;
  /** Shown above each page, for example that this is the sandbox. */
  banner: string | null;
  /** Called for each answered request; `route`: the section, such as `/events`; empty where there is no page. */
  onAnswered?: ((request: { method: string; route: string; status: number; seconds: number }) => void) | undefined;
}

export interface RunningDashboard {
  /** The address from this machine. */
  url: string;
  close(): Promise<void>;
}

/** For a request to arrive. Node checks for late ones at this interval. */
const timeouts = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
};

/**
 * How long a connection may be silent. Longer than the computation of a report; a client that never reads its answer
 * would otherwise keep one of the few connections for good.
 */
const stillMs = 5 * 60_000;

/** Serves the dashboard until it is closed. Throws `ConfigurationError` when it cannot listen. */
export async function startDashboard(
  deps: PageDeps,
  groups: readonly PageGroup[],
  options: DashboardOptions,
): Promise<RunningDashboard> {
  const assets = await readAssets();
  const counts = createOpenCounts(deps, groups);
  const app = createApp(deps, groups, { ...options, assets, counts });
  const callback = app.callback();
  const server = createServer(timeouts, (req, res) => void callback(req, res));
  server.maxConnections = 256;
  server.timeout = stillMs;
  lingerAfterAnswers(server);
  await listen(server, options.listen);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${localAddress(options.listen.host)}:${port}`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const late = setTimeout(() => server.closeAllConnections(), 5_000);
      await closed;
      clearTimeout(late);
      await counts.close();
    },
  };
}

/** The most pages made at the same time: six for each connection of the pool. */
const mostPages = 24;

interface AppOptions extends DashboardOptions {
  assets: Assets;
  counts: CountReader;
}

interface AppContext extends AppOptions {
  deps: PageDeps;
  places: readonly Place[];
  search: Search | null;
}

/** State that a request collects on its way. */
interface State {
  /** The first part of the path of the page that is meant, such as `/events`. */
  section?: string;
  /** Empty for a request without one. */
  form: URLSearchParams;
  visitor: Visitor | null;
  cookies: Cookies;
}

function createApp(deps: PageDeps, groups: readonly PageGroup[], given: AppOptions): Koa {
  const options: AppContext = {
    ...given,
    deps,
    places: groups.flatMap(({ place }) => (place === null ? [] : [place])),
    search: groups.find(({ search }) => search !== undefined)?.search ?? null,
  };
  const { log } = deps;
  const isHttps = options.publicUrl?.startsWith("https:") === true;
  const origin = options.publicUrl === null ? null : new URL(options.publicUrl).origin;
  const cookies = createCookies({ isHttps });
  const app = new Koa({ proxy: options.proxies > 0, maxIpsCount: options.proxies });
  app.on("error", (err: unknown) => log.warn({ err }, "a page could not be answered"));
  app.use(timeAnswers(options));
  app.use(browserRules({ isHttps }));
  app.use(serveAssets(options.assets));
  app.use(answerErrors(deps, options));
  app.use(refuseUnsent());
  app.use(refuseOtherNames({ origin }));
  app.use(refuseForeign({ origin }));
  app.use(readForms());
  app.use(refuseTooMany({ most: mostPages }));
  app.use(findVisitor(deps, cookies, options));
  const router = new Router();
  for (const route of groups.flatMap(({ routes }) => routes)) {
    const handle: Middleware<State> = async (ctx) => {
      ctx.state.section = /^\/[^/]*/.exec(route.path)?.[0] ?? "";
      const visitor = authorized(route, ctx.state.visitor);
      if (visitor === "sign in first") return askToSignIn(ctx, formPageOf(ctx, router, origin));
      const request = {
        visitor: visitor as Visitor,
        actor: {
          accountId: visitor?.session.accountId ?? null,
          name: visitor?.session.email ?? "nobody",
          via: "dashboard" as const,
          address: ctx.ip,
        },
        params: ctx["params"] as Record<string, string>,
        query: new URLSearchParams(ctx.querystring),
        form: ctx.state.form,
        userAgent: ctx.get("user-agent"),
        isChosen: ["none", "same-origin"].includes(ctx.get("sec-fetch-site")),
        theme: themeOf(cookies, ctx),
        kept: cookies.kept.read(ctx),
      };
      const answer = await route.answer(deps, request);
      if (route.method === "POST" && answer.kind === "redirect") options.counts.expire();
      await send(ctx, answer, options);
    };
    if (route.method === "GET") router.get(route.path, handle);
    else router.post(route.path, handle);
  }
  app.use(router.routes());
  app.use(() => {
    throw new PageError(404, "There is no page at this address.");
  });
  return app;
}

function timeAnswers({ onAnswered }: Pick<DashboardOptions, "onAnswered">): Middleware<State> {
  return async (ctx, next) => {
    const begunMs = performance.now();
    await next();
    const seconds = (performance.now() - begunMs) / 1_000;
    const { method, status } = ctx;
    onAnswered?.({ method, route: ctx.state.section ?? "", status, seconds });
  };
}

/** The visitor; null where none is needed and none is signed in. Throws `PageError`. */
function authorized({ access, method }: Route, visitor: Visitor | null): Visitor | null | "sign in first" {
  if (access === "anyone") return visitor;
  if (visitor === null) return "sign in first";
  if (access === "signed-in" || visitor.permissions.has(access)) return visitor;
  const giving = roleNames.filter((role) => permissionsOf([role]).has(access));
  throw new PageError(
    403,
    `${method === "POST" ? "Nothing was changed. " : ""}Your roles (${visitor.session.roles.join(", ") || "none"}) ` +
      `do not allow this: it requires the role ${giving.join(" or ")}, which has the permission ${access}. Ask a ` +
      "person with the role admin.",
  );
}

/** The page of a form, as the browser names it; null where it is none of this dashboard's. */
function formPageOf(ctx: Context, router: Router, origin: string | null): string | null {
  const given = ctx.get("referer");
  if (!URL.canParse(given)) return null;
  const page = new URL(given);
  const isOwn = page.host === ctx.host || page.origin === origin;
  // The answer to a form cannot be read again.
  return isOwn && router.match(page.pathname, "GET").route ? `${page.pathname}${page.search}` : null;
}

/** Signing in redirects to the requested page, or to the form's page, which reports that the form was lost. */
function askToSignIn(ctx: Context, formPage: string | null): void {
  const isForm = ctx.method === "POST";
  const next = ownPath(isForm ? formPage : ctx.url);
  const query = new URLSearchParams({
    ...(next === "/" ? {} : { next }),
    ...(isForm ? { unsaved: "yes" } : {}),
  });
  ctx.redirect(query.size === 0 ? "/sign-in" : `/sign-in?${query.toString()}`);
  ctx.status = 303;
}

/** Runs before any other work for a request, so that a slow form holds up only itself. */
function readForms(): Middleware<State> {
  return async (ctx, next) => {
    ctx.state.form = ctx.method === "POST" ? await readForm(ctx) : new URLSearchParams();
    await next();
  };
}

function serveAssets({ byPath }: Assets): Middleware {
  return async (ctx, next) => {
    const asset = byPath.get(ctx.path);
    if (asset === undefined) return next();
    ctx.set("cache-control", "public, max-age=31536000, immutable");
    ctx.type = asset.type;
    ctx.body = asset.body;
  };
}

function findVisitor(
  { db, clock }: PageDeps,
  cookies: Cookies,
  { proxySignIn }: Pick<AppOptions, "proxySignIn">,
): Middleware<State> {
  return async (ctx, next) => {
    ctx.state.visitor = null;
    ctx.state.cookies = cookies;
    const session = await ownSession(ctx);
    if (session !== null) {
      ctx.state.visitor = { session, permissions: permissionsOf(session.roles) };
    }
    await next();
  };

  async function ownSession(ctx: Context): Promise<Session | null> {
    const session = await sessionOf(ctx, cookies.session.read(ctx));
    if (proxySignIn === null) return session;
    const email = proxiedEmail(proxySignIn, {
      peer: ctx.req.socket.remoteAddress ?? "",
      header: (name) => ctx.get(name),
    });
    // The session ends if the proxy now names another person or none.
    if (email === null) return session?.method === "proxy" ? null : session;
    if (session?.email === email) return session;
    const browser = { address: ctx.ip, userAgent: ctx.get("user-agent"), replaces: session };
    const token = await beginProxied({ db, clock }, { email, ...browser });
    if (token !== null) cookies.session.set(ctx, token);
    return sessionOf(ctx, token);
  }

  async function sessionOf(ctx: Context, token: string | null): Promise<Session | null> {
    const found = token === null ? null : await findSession(db, token, clock.now());
    if (found?.newToken != null) cookies.session.set(ctx, found.newToken);
    return found?.session ?? null;
  }
}

const statementTimedOut = "57014";

/** Every failure becomes a page that says what to do. The program's own faults are only in the log. */
function answerErrors({ log }: PageDeps, options: AppContext): Middleware<State> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (err) {
      const { status, message } = explain(err, { isChange: ctx.method === "POST" });
      if (status >= 500) log.warn({ err, path: ctx.path.slice(0, 200) }, "a page failed");
      const body = html`<p class="problem">${message}</p>
        ${err instanceof PageError && err.details}
        <p><a href="/">Go to the first page</a></p>`;
      await send(ctx, { kind: "page", title: titles[status] ?? "This did not work", body, status }, options);
    }
  };
}

const titles: Readonly<Record<number, string>> = {
  403: "You may not do this",
  404: "Not found",
  409: "This has changed since you opened it",
  503: "Temporarily unavailable",
};

/** Explains errors that the route did not explain itself. Decides by their codes. */
function explain(error: unknown, { isChange }: { isChange: boolean }): { status: number; message: string } {
  if (error instanceof PageError) return { status: error.status, message: error.message };
  const code = errorCode(error);
  if (code === statementTimedOut) {
    return {
      status: 503,
      message: isChange
        ? "The database took more than three seconds, perhaps because another change of the same object is in " +
          "progress. Check the page before you try again."
        : "The database took more than three seconds for this page. Narrow the filter, such as to fewer days.",
    };
  }
  if (error instanceof Error && error.name === "KnexTimeoutError") {
    return {
      status: 503,
      message:
        "Every connection to the database is busy with other pages, or it does not answer. Try again in a moment.",
    };
  }
  if (isRetryableConflict(error)) {
    return {
      status: 409,
      message: "Another change of the same object was in progress, so nothing was done. Look at it again, then decide.",
    };
  }
  const advised = withRoleAdvice(error);
  if (advised !== error) return { status: 503, message: (advised as Error).message };
  if (code !== undefined && isOutage(error)) {
    return {
      status: 503,
      message:
        "The database does not answer. Try again in a moment: the dashboard recovers by itself once the database " +
        "is back. The log of the dashboard says more.",
    };
  }
  return {
    status: 500,
    message:
      "The page could not be built. The log of the dashboard says why; the mirror and the webhooks are not affected.",
  };
}

async function send(ctx: Context, answer: PageAnswer, options: AppContext): Promise<void> {
  const { assets, deps, places, search } = options;
  const { visitor = null, cookies } = ctx.state as Partial<State>;
  switch (answer.kind) {
    case "redirect":
      // The target may depend on a form's sender.
      if (!/^\/(?![/\\])/.test(answer.to)) throw new Error("a page leads to the dashboard alone");
      if (answer.token != null) cookies?.session.set(ctx, answer.token);
      if (answer.theme === "system") cookies?.theme.clear(ctx);
      else if (answer.theme !== undefined) cookies?.theme.set(ctx, answer.theme);
      if (answer.token === null) cookies?.session.clear(ctx);
      if (answer.token !== undefined) cookies?.kept.clear(ctx);
      if (answer.notice !== undefined) cookies?.notice.set(ctx, answer.notice.slice(0, 500));
      ctx.redirect(answer.to);
      ctx.status = 303;
      return;
    case "leave":
      cookies?.kept.set(ctx, answer.keep);
      ctx.redirect(answer.url);
      ctx.status = 303;
      return;
    case "file":
      ctx.set("content-disposition", `attachment; filename="${answer.name.replaceAll(/[^\w.-]/g, "_")}"`);
      ctx.type = answer.type;
      ctx.body = answer.body;
      return;
    case "page": {
      const notice = cookies?.notice.read(ctx) ?? null;
      if (notice !== null) cookies?.notice.clear(ctx);
      ctx.status = answer.status ?? 200;
      ctx.type = "text/html; charset=utf-8";
      ctx.body = renderPage({
        title: answer.title,
        body: answer.body,
        visitor,
        theme: cookies === undefined ? "system" : themeOf(cookies, ctx),
        path: ctx.path,
        notice,
        command: answer.command ?? null,
        assets,
        banner: bannerText(options.banner, deps),
        now: deps.clock.now(),
        places,
        counts: await options.counts.counts(visitor),
        search,
        searched: answer.searched ?? "",
      });
    }
  }
}

/** A smaller difference is none that a person would notice. */
const noticedMs = 60_000;

/** Where the service's clock was moved, as only a sandbox's can be, both clocks are named. */
function bannerText(banner: string | null, { clock, serviceClock, timeZone }: PageDeps): string | null {
  const at = serviceClock.now();
  const aheadMs = at.getTime() - clock.now().getTime();
  if (banner === null || Math.abs(aheadMs) < noticedMs) return banner;
  const distance = `${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  return `${banner} Its clock says ${timeText(at, timeZone)}, ${distance}.`;
}

const themeOf = (cookies: Cookies, ctx: Context): Theme =>
  themes.find((theme) => theme === cookies.theme.read(ctx)) ?? "system";
