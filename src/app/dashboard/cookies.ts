import type { Context } from "koa";

/** Reads and sets a cookie that scripts cannot read and other sites cannot send with a change. */
export interface PrivateCookie {
  read(ctx: Context): string | null;
  set(ctx: Context, value: string): void;
  clear(ctx: Context): void;
}

/** The dashboard's cookies. The database decides how long a session lasts; its cookie lasts as long as the browser. */
export interface Cookies {
  /** The session's token. */
  session: PrivateCookie;
  /** Shown once after a change. */
  notice: PrivateCookie;
  /** Light or dark, where the person chose; empty: as the system is. */
  theme: PrivateCookie;
  /** State that comes back from the company's sign-in. */
  kept: PrivateCookie;
}

export function createCookies({ isHttps }: { isHttps: boolean }): Cookies {
  return {
    session: createCookie("tallyhook", { isHttps }),
    notice: createCookie("tallyhook-notice", { isHttps, maxAgeSeconds: 60 }),
    theme: createCookie("tallyhook-theme", { isHttps, maxAgeSeconds: 365 * 86_400 }),
    kept: createCookie("tallyhook-kept", { isHttps, maxAgeSeconds: 600 }),
  };
}

/** With https, the name makes browsers insist that the cookie is Secure, for all paths, and for this host only. */
function createCookie(
  plainName: string,
  { isHttps, maxAgeSeconds }: { isHttps: boolean; maxAgeSeconds?: number },
): PrivateCookie {
  const name = isHttps ? `__Host-${plainName}` : plainName;
  const rules = `; Path=/; HttpOnly; SameSite=Lax${isHttps ? "; Secure" : ""}`;
  const age = maxAgeSeconds === undefined ? "" : `; Max-Age=${maxAgeSeconds}`;
  return {
    read(ctx) {
      const found = ctx
        .get("cookie")
        .split(";")
        .map((pair) => pair.trim())
        .find((pair) => pair.startsWith(`${name}=`));
      try {
        return found === undefined ? null : decodeURIComponent(found.slice(name.length + 1));
      } catch {
        return null;
      }
    },
    set: (ctx, value) => ctx.append("set-cookie", `${name}=${encodeURIComponent(value)}${age}${rules}`),
    clear: (ctx) => ctx.append("set-cookie", `${name}=; Max-Age=0${rules}`),
  };
}
