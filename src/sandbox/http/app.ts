import Router from "@koa/router";
import Koa from "koa";

import type { Log } from "../../platform/log.ts";
import { Refusal } from "../refusal.ts";
import type { State } from "../state.ts";
import { refusalAnswer } from "./errors.ts";

export interface AppDeps {
  log: Log;
  state: () => State;
  api: Router;
  controls: Router;
}

/** The sandbox's HTTP side: every answer is JSON, carries a request id, and bears the date of the sandbox's clock. */
export function createApp({ log, state, api, controls }: AppDeps): Koa {
  const app = new Koa();
  let requests = 0;
  const date = dateHeader(() => state().time.nowMs());

  app.use(async (ctx, next) => {
    requests += 1;
    const requestId = `req_${requests.toString(36).padStart(8, "0")}`;
    ctx.set("X-Request-Id", requestId);
    ctx.type = "application/json";
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) throw unknownPath(ctx.method, ctx.path);
    } catch (error) {
      const refusal = error instanceof Refusal ? error : unexpected(log, error, requestId);
      const answer = refusalAnswer(refusal, requestId);
      ctx.status = answer.status;
      ctx.body = JSON.stringify(answer.body);
      // What is left of a refused body is not worth reading.
      if (!ctx.req.complete) ctx.set("Connection", "close");
    }
    ctx.type = "application/json";
    ctx.set("Date", date());
  });
  app.use(controls.routes());
  app.use(api.routes());
  app.on("error", (error: unknown) => log.warn({ err: error }, "a connection failed"));
  return app;
}

function unknownPath(method: string, path: string): Refusal {
  return new Refusal("resource_not_found", `Unknown path: ${method} ${path}.`);
}

function unexpected(log: Log, error: unknown, requestId: string): Refusal {
  log.error({ err: error, requestId }, "a request failed unexpectedly");
  return new Refusal("internal_error", "An unexpected error occurred.");
}

/** The HTTP date of the sandbox's clock: whole seconds, made once a second. */
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
