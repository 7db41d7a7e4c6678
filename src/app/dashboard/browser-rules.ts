import type { Middleware } from "koa";
import { isLoopbackHost } from "../../platform/http/listen.ts";
import { PageError } from "./route.ts";

const contentSecurityPolicy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** Limits for a browser on any answer: it may run only the dashboard's own files, and keep no page. */
export function browserRules({ isHttps }: { isHttps: boolean }): Middleware {
  return async (ctx, next) => {
    ctx.set({
      "content-security-policy": contentSecurityPolicy,
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "same-origin",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
      // After a log-out the back button must show no page. The dashboard's own files override this.
      "cache-control": "no-store",
      ...(isHttps ? { "strict-transport-security": "max-age=31536000" } : {}),
    });
    await next();
  };
}

/**
 * Refuses what no link and no form of the dashboard sends: other methods, HEAD among them, since reading may be
 * recorded; and null characters, which no column can hold. Throws `PageError`.
 */
export function refuseUnsent(): Middleware {
  return async (ctx, next) => {
    if (ctx.method !== "GET" && ctx.method !== "POST") {
      ctx.set("allow", "GET, POST");
      throw new PageError(405, "The dashboard takes GET and POST only.");
    }
    if (ctx.url.includes("%00")) {
      throw new PageError(400, "This address holds a null character. Open the page by its link.");
    }
    await next();
  };
}

/**
 * Refuses pages while so many are being made: all wait for the same few connections, and a further one would wait
 * longer than a person does. Signing in is never refused here. Throws `PageError`.
 */
export function refuseTooMany({ most }: { most: number }): Middleware {
  let pages = 0;
  return async (ctx, next) => {
    if (/^\/sign-(?:in|out)(?:\/|$)/.test(ctx.path)) return next();
    if (pages >= most) {
      ctx.set("retry-after", "5");
      throw new PageError(503, "The dashboard is busy with other pages. Nothing was done; try again in a moment.");
    }
    pages += 1;
    try {
      await next();
    } finally {
      pages -= 1;
    }
  };
}

/**
 * Refuses requests under another name than the dashboard's: a page can make its own name point at this machine. Without
 * a public address only names of this machine are accepted, from the request's own header: a header that a proxy passes
 * on may be forged, and is accepted only if it is the public address. Throws `PageError`.
 */
export function refuseOtherNames({ origin }: { origin: string | null }): Middleware {
  const own = origin === null ? null : new URL(origin).host;
  return async (ctx, next) => {
    const isHandedOn = ctx.app.proxy && ctx.get("x-forwarded-host") !== "";
    const isOwn = ctx.host === own || (!isHandedOn && isLoopbackHost(ctx.hostname.toLowerCase()));
    const names = ctx.req.rawHeaders.filter((name, n) => n % 2 === 0 && /^host$/i.test(name));
    if (names.length > 1) throw new PageError(400, "The request names two hosts.");
    if (!isOwn) {
      throw new PageError(
        421,
        own === null
          ? "The dashboard answers on this machine only, as localhost or 127.0.0.1. Set PUBLIC_DASHBOARD_URL to " +
              "reach it otherwise."
          : `The dashboard answers as ${own} only (PUBLIC_DASHBOARD_URL).`,
      );
    }
    await next();
  };
}

/**
 * Refuses requests that another site's page makes a browser send. `Sec-Fetch-Site` is set by the browser itself; older
 * ones send `Origin`, which must be the dashboard's. A request with neither comes from no browser that a page could
 * misuse, and is refused as well. Throws `PageError`.
 */
export function refuseForeign({ origin }: { origin: string | null }): Middleware {
  return async (ctx, next) => {
    if (ctx.method !== "GET" && !isOwn(ctx.get("sec-fetch-site"), ctx)) {
      throw new PageError(
        403,
        "This request came from another site's page, so nothing was done. Open the dashboard itself and try again.",
      );
    }
    await next();
  };

  function isOwn(site: string, ctx: { get(name: string): string; host: string }): boolean {
    if (site !== "") return site === "same-origin";
    const given = ctx.get("origin");
    return given !== "" && given === (origin ?? `http://${ctx.host}`);
  }
}
