import Router from "@koa/router";
import Koa from "koa";
import type { Context, Middleware } from "koa";
import type { Log } from "../platform/log.ts";
import { refusals, sendRefusal } from "./answers.ts";
import type { ReceiverCounters } from "./counters.ts";
import type { ReadinessReport } from "./readiness.ts";
import type { ReceiveWebhook } from "./receive-webhook.ts";

export interface AppDeps {
  receiveWebhook: ReceiveWebhook;
  readiness: () => Promise<ReadinessReport>;
  counters: ReceiverCounters;
  log: Log;
}

/** The public HTTP side. Shows nothing but what the design lists: no counters, no names of what lies behind. */
export function createApp({ receiveWebhook, readiness, counters, log }: AppDeps): Koa {
  const router = new Router();
  router.post("/webhooks", (ctx) => {
    ctx.respond = false;
    return receiveWebhook(ctx.req, ctx.res);
  });
  router.get("/healthz", (ctx) => {
    ctx.body = { status: "ok" };
  });
  router.get("/readyz", async (ctx) => {
    const report = await readiness();
    ctx.status = report.status === "unavailable" ? 503 : 200;
    ctx.set("Cache-Control", "no-store");
    ctx.body = report;
  });

  const app = new Koa();
  app.use(router.routes() as unknown as Middleware);
  app.use((ctx) => refuseUnrouted(counters, ctx));
  // Without a listener of ours Koa writes errors to the standard error output, whatever they hold.
  app.on("error", (err: unknown) => log.debug({ err }, "a connection failed"));
  return app;
}

function refuseUnrouted(counters: ReceiverCounters, ctx: Context): void {
  const allowed = new Set<string>(
    (ctx["matched"] as Router["stack"]).flatMap(({ methods }) => methods),
  );
  ctx.respond = false;
  if (allowed.size === 0) {
    counters.rejected.not_found += 1;
    sendRefusal(ctx.res, refusals.notFound);
  } else {
    counters.rejected.method_not_allowed += 1;
    sendRefusal(ctx.res, refusals.method, { Allow: [...allowed].join(", ") });
  }
}
