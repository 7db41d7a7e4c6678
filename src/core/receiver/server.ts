import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Router from "@koa/router";
import type { Knex } from "knex";
import Koa from "koa";
import type { Middleware } from "koa";
import type { Pool } from "pg";
import { type EnvelopePaths, defaultEnvelopePaths } from "../contract/event-envelope.ts";
import { type SignatureSchemeName, signatureScheme } from "../contract/signature/signature-scheme.ts";
import { type AppendLimits, createAppender } from "../inbox/append.ts";
import type { Clock } from "../../platform/clock.ts";
import { listen, localAddress } from "../../platform/http/listen.ts";
import type { Log } from "../../platform/log.ts";
import { createRateLimitedWarnings } from "../../platform/rate-limited-warnings.ts";
import { apiErrors, refuseLate, sendApiError } from "./answers.ts";
import { createHttpServer } from "./connections.ts";
import { type ReceiverCounters, createReceiverCounters } from "./counters.ts";
import { type ReceiverLimits, createDeadlines, defaultHeldBodyBytes, defaultReceiverLimits } from "./limits.ts";
import type { LiveSecrets } from "./live-secrets.ts";
import { type ReadinessCheck, type ReadinessReport, createReadiness } from "./readiness.ts";
import { type WebhookStep, webhookSteps } from "./webhook.ts";

export interface ReceiverDeps {
  db: Knex;
  /** The inbox's own pool, with time-outs for connecting and for queries. */
  pool: Pool;
  secrets: Pick<LiveSecrets, "current" | "refresh" | "markUsed" | "problems">;
  /** Wall clock. */
  clock: Clock;
  log: Log;
  /** Called after every committed batch of new events. Must not throw; not awaited. */
  onCommitted(seqs: number[]): void;
  /** Called for each answered webhook. Must not throw. */
  onAnswered?: ((status: number, seconds: number) => void) | undefined;
  /** Dependencies that `GET /readyz` reports as degraded when they are down: the queue, the service. */
  degrading?: readonly ReadinessCheck[];
}

export interface ReceiverOptions {
  host: string;
  /** 0 picks a free port. */
  port: number;
  signature: { scheme: SignatureSchemeName; toleranceSeconds: number };
  maxBodyBytes: number;
  /** Byte budget of the bodies of all requests in progress; past it 503. See `defaultHeldBodyBytes`. */
  maxHeldBodyBytes?: number;
  maxConnections: number;
  places?: Readonly<EnvelopePaths>;
  appendLimits?: AppendLimits;
  limits?: Partial<ReceiverLimits>;
}

export interface RunningReceiver {
  /** The address from this machine. */
  url: string;
  port: number;
  counters: Readonly<ReceiverCounters>;
  /** The answer of `GET /readyz`. */
  readiness(): Promise<ReadinessReport>;
  /**
   * Stops accepting, answers the requests in progress, stores the events it has taken, and closes the connections.
   * Always ends within `closeMs`. Leaves pool, database and secrets to their owner. Idempotent.
   */
  close(): Promise<void>;
}

/** Time for the last answers to be sent. */
const flushMs = 250;

/**
 * Starts the public server. Throws `ConfigurationError` when it cannot listen on the address. The database may be down:
 * events are answered 503 until it is back.
 */
export async function startReceiver(deps: ReceiverDeps, options: ReceiverOptions): Promise<RunningReceiver> {
  const { db, pool, secrets, clock, log, onCommitted, onAnswered, degrading = [] } = deps;
  const { maxBodyBytes, maxHeldBodyBytes = defaultHeldBodyBytes(maxBodyBytes) } = options;
  const { signature, places = defaultEnvelopePaths } = options;
  const limits = { ...defaultReceiverLimits, ...options.limits };
  const counters = createReceiverCounters();
  const warnRateLimited = createRateLimitedWarnings({ log, clock });
  const appender = createAppender({ pool, log, onCommitted }, options.appendLimits);
  const deadlines = createDeadlines<ServerResponse>((res) => refuseLate({ counters, warnRateLimited }, res), {
    limitMs: limits.answerMs,
    tickMs: limits.tickMs,
  });
  const webhook = webhookSteps(
    {
      appender,
      secrets,
      scheme: signatureScheme(signature.scheme),
      clock,
      log,
      warnRateLimited,
      counters,
      deadlines,
      onAnswered,
    },
    {
      maxBodyBytes,
      maxHeldBodyBytes,
      toleranceSeconds: signature.toleranceSeconds,
      places,
      limits,
    },
  );
  const readiness = createReadiness({
    pool,
    db,
    log,
    degrading: [...degrading, { name: "signing_secrets", check: () => assertSecrets(secrets) }],
  });
  const app = createApp({ webhook, readiness, counters, log });

  const callback = app.callback();
  let isClosing = false;
  const server = createHttpServer(
    {
      counters,
      warnRateLimited,
      slowest: () => slowestSender(deadlines.items()),
      handle(req, res) {
        if (isClosing) askToClose(res);
        void callback(req, res);
      },
    },
    { limits, maxConnections: options.maxConnections },
  );
  try {
    await listen(server, { ...options, hostVariable: "HOST", portVariable: "PORT" });
  } catch (error) {
    deadlines.close();
    throw error;
  }

  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    isClosing = true;
    for (const res of deadlines.items()) askToClose(res);
    server.close();
    while (counters.inFlight > 0) await sleep(10);
    await appender.close();
    server.closeIdleConnections();
    await Promise.race([closed, sleep(flushMs, null, { ref: false })]);
  };
  const closeInTime = async (): Promise<void> => {
    await Promise.race([close(), sleep(limits.closeMs, null, { ref: false })]);
    server.closeAllConnections();
    deadlines.close();
  };
  let closing: Promise<void> | undefined;
  return {
    url: `http://${localAddress(options.host)}:${port}`,
    port,
    counters,
    readiness,
    close: () => (closing ??= closeInTime()),
  };
}

/** The connection of the oldest request in progress whose body has not fully arrived. */
function slowestSender(answers: readonly ServerResponse[]): Socket | null {
  return answers.find(({ req }) => !req.complete && !req.socket.destroyed)?.req.socket ?? null;
}

/** Makes this answer the last on its connection. */
function askToClose(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader("Connection", "close");
}

async function assertSecrets({ current, problems }: Pick<LiveSecrets, "current" | "problems">): Promise<void> {
  const [problem] = problems();
  if (problem !== undefined) throw new Error(problem);
  if (current().length === 0) throw new Error("there is no signing secret: nothing can be verified");
}

export interface AppDeps {
  webhook: WebhookStep[];
  readiness: () => Promise<ReadinessReport>;
  counters: ReceiverCounters;
  log: Log;
}

/** The public HTTP application. It exposes no counters and no names of the systems behind it. */
export function createApp({ webhook, readiness, counters, log }: AppDeps): Koa {
  const router = new Router();
  router.post("/webhooks", chain(webhook));
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
  app.use(router.routes());
  app.use(nothingThere(router, counters)); // 404, 405
  // Without this listener Koa writes errors to standard error, with all the data they contain.
  app.on("error", (err: unknown) => log.debug({ err }, "a connection failed"));
  return app;
}

/**
 * Makes one middleware of the steps, once. koa-compose, which the router would call for every request, wraps each step
 * in a promise (3 of 40 µs). These steps need none: the first one awaits the others, and so catches their errors.
 */
function chain(steps: readonly WebhookStep[]): WebhookStep {
  return steps.reduceRight<WebhookStep>(
    (rest, step) => (ctx, next) => step(ctx, () => rest(ctx, next)),
    (_ctx, next) => next(),
  );
}

function nothingThere(router: Router, counters: ReceiverCounters): Middleware {
  return (ctx) => {
    const methods = new Set(router.match(ctx.path, ctx.method).path.flatMap((each) => each.methods));
    ctx.respond = false;
    if (methods.size === 0) {
      counters.rejected.not_found += 1;
      sendApiError(ctx.res, apiErrors.notFound);
    } else {
      counters.rejected.method_not_allowed += 1;
      sendApiError(ctx.res, apiErrors.method, { Allow: [...methods].join(", ") });
    }
  };
}
