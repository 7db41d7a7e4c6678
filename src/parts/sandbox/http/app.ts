import { finished } from "node:stream/promises";
import Router from "@koa/router";
import Koa, { type Context } from "koa";
import type { Log } from "../../../platform/log.ts";
import { ApiError, errorAnswer } from "../engine/api-error.ts";
import type { State } from "../engine/state.ts";
import { SpoiledAnswer, proxyPage } from "./mount.ts";
import { type IsOwnHost, assertOwnSite } from "./own-site.ts";

export interface AppDeps {
  log: Log;
  isOwnHost: IsOwnHost;
  state: () => State;
  api: Router;
  /** The sandbox's routes outside of `/v1`: gateway, capture, images, documentation. */
  beside: readonly Router[];
  controls: Router;
}

/**
 * The sandbox's HTTP application. Every answer is JSON, carries a request id, and bears the date of the sandbox's
 * clock.
 */
export function createApp({ log, isOwnHost, state, api, beside, controls }: AppDeps): Koa {
  const app = new Koa();
  let requests = 0;
  const date = dateHeader(() => state().time.nowMs());

  app.use(async (ctx, next) => {
    requests += 1;
    const requestId = `req_${requests.toString(36).padStart(8, "0")}`;
    ctx.set("X-Request-Id", requestId);
    ctx.type = "application/json";
    try {
      assertOwnSite(ctx, isOwnHost);
      if (ctx.method !== "GET") state().noteRequest();
      try {
        await next();
      } finally {
        // Noted again: after long work, the state noted at its start may be on disk already.
        if (ctx.method !== "GET") state().noteRequest();
      }
      if (ctx.status === 404 && ctx.body === undefined) throw unknownPath(ctx.method, ctx.path);
    } catch (error) {
      if (error instanceof SpoiledAnswer) return spoil(ctx, error.kind);
      const refusal = error instanceof ApiError ? error : unexpected(log, error, requestId);
      const answer = errorAnswer(refusal, requestId);
      ctx.status = answer.status;
      ctx.set(refusal.headers);
      ctx.type = "application/json";
      ctx.body = JSON.stringify(answer.body);
      await dropRest(ctx);
    }
    if (ctx.respond !== false) ctx.set("Date", date());
  });
  app.use(controls.routes());
  app.use(api.routes());
  for (const router of beside) app.use(router.routes());
  app.on("error", (error: unknown) => log.warn({ err: error }, "a connection failed"));
  return app;
}

/** Longer than any upload on this machine takes. */
const dropWithinMs = 30_000;

/**
 * Reads and drops the rest of a refused body. Closing before it arrived would reset the connection and lose the answer.
 * If the connection ends with the answer, the answer waits for that.
 */
async function dropRest({ req, res }: Context): Promise<void> {
  req.resume();
  if (res.shouldKeepAlive) return;
  await finished(req, { signal: AbortSignal.timeout(dropWithinMs) }).catch(() => {});
}

/** Sends a damaged answer: none at all, or a proxy's page. */
function spoil(ctx: Context, kind: SpoiledAnswer["kind"]): void {
  if (kind === "html") {
    ctx.status = 502;
    ctx.type = "text/html";
    ctx.body = proxyPage;
    return;
  }
  ctx.respond = false;
  ctx.req.socket.destroy();
}

function unknownPath(method: string, path: string): ApiError {
  return new ApiError("resource_not_found", `Unknown path: ${method} ${path}.`);
}

function unexpected(log: Log, error: unknown, requestId: string): ApiError {
  log.error({ err: error, requestId }, "a request failed unexpectedly");
  return new ApiError("internal_error", "An unexpected error occurred.");
}

/** The HTTP date of the sandbox's clock: whole seconds, formatted once a second. */
function dateHeader(nowMs: () => number): () => string {
  let second = Number.NaN;
  let text = "";
  return () => {
    const current = Math.floor(nowMs() / 1000);
    if (current !== second) {
      second = current;
      text = new Date(current * 1000).toUTCString();
    }
    return text;
  };
}
