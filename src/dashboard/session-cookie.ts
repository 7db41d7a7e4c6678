import type { Context } from "koa";

/** Reads and sets the cookie that holds the session's token. */
export interface SessionCookie {
  read(ctx: Context): string | null;
  /** Until the browser closes: how long a session lasts is the database's to say. */
  set(ctx: Context, token: string): void;
  clear(ctx: Context): void;
}

/** With https, the name makes browsers insist that the cookie is Secure, for all paths, and of this host alone. */
export function createSessionCookie({ isHttps }: { isHttps: boolean }): SessionCookie {
  const name = isHttps ? "__Host-tallyhook" : "tallyhook";
  const options = `; Path=/; HttpOnly; SameSite=Lax${isHttps ? "; Secure" : ""}`;
  return {
    read(ctx) {
      const found = ctx
        .get("cookie")
        .split(";")
        .map((pair) => pair.trim())
        .find((pair) => pair.startsWith(`${name}=`))
        ?.slice(name.length + 1);
      return found !== undefined && /^[\w-]{43}$/.test(found) ? found : null;
    },
    set: (ctx, token) => ctx.append("set-cookie", `${name}=${token}${options}`),
    clear: (ctx) => ctx.append("set-cookie", `${name}=; Max-Age=0${options}`),
  };
}
