import type { Context } from "koa";
import getRawBody from "raw-body";
import { PageError } from "./route.ts";

const mostBytes = 64 * 1024;

/** The fields of a form. Throws `PageError` for another type of body, one too long, and one that no column can hold. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  const text = await readText(ctx);
  if (text.includes("%00") || text.includes("\0")) {
    throw new PageError(400, "The form holds a null character. Type it instead of pasting it.");
  }
  return new URLSearchParams(text);
}

async function readText(ctx: Context): Promise<string> {
  if (ctx.is("application/x-www-form-urlencoded") === false) {
    throw new PageError(415, "The dashboard takes forms only.");
  }
  try {
    // Some proxies hand a form on in pieces, without its length.
    const length = ctx.request.length ?? null;
    return await getRawBody(ctx.req, { limit: mostBytes, length, encoding: "utf-8" });
  } catch (cause) {
    const isTooLong = (cause as { type?: string }).type === "entity.too.large";
    const message = isTooLong ? "The form is too long." : "The form arrived incomplete. Try again.";
    throw new PageError(isTooLong ? 413 : 400, message, { cause });
  }
}
