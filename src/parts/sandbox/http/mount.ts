import Router from "@koa/router";
import type { Context } from "koa";
import type { Endpoint, EndpointRequest, Permission } from "../../../core/contract/endpoint.ts";
import { type Answer, bodyOf } from "../engine/answer.ts";
import { ApiError, statusOf } from "../engine/api-error.ts";
import { effectiveVersion } from "../engine/api-versions.ts";
import { idempotencyKey, oncePerKey } from "../engine/idempotency.ts";
import { type ApiKey, isAllowedAddress } from "../engine/keys.ts";
import { countRequest, rateCategory, rateHeaders, retryAfter } from "../engine/rate-limit.ts";
import type { Space } from "../engine/space.ts";
import type { State } from "../engine/state.ts";
import { readJsonObject, readUpload, validate } from "./read-request.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { type DamagedAnswer, drawApiFaults, takeForced } from "../engine/faults.ts";

/** `resumes` is the order that an earlier request with the same key left pending. */
type Request<E extends Endpoint> = EndpointRequest<E> & { resumes: string | null };

/**
 * The work of an endpoint, given the space of the key and the request; `state` is for data beyond the space. The clock
 * stands still during the work, unless the work waits for the gateway (setting `gateway_delay_ms`).
 */
export type Handler<E extends Endpoint> = (space: Space, request: Request<E>, state: State) => Answer | Promise<Answer>;

export interface Mounted {
  endpoint: Endpoint;
  handle: Handler<Endpoint>;
}

/** An endpoint with its handler, whose types are checked against each other. */
export function mounted<E extends Endpoint>(endpoint: E, handle: Handler<E>): Mounted {
  return { endpoint, handle };
}

/**
 * A router that serves endpoints under a prefix. It asks for the state at each request, since a reset makes a new one.
 */
export function createApiRouter(state: () => State, endpoints: readonly Mounted[], prefix = "/v1"): Router {
  const router = new Router({ prefix, sensitive: true });
  for (const { endpoint, handle } of endpoints) {
    const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ":$1");
    router.register(path, [endpoint.method.toLowerCase()], async (ctx: Context) => {
      const answer = await serve(state(), endpoint, handle, ctx);
      ctx.status = answer.status;
      ctx.body = JSON.stringify(bodyOf(answer));
    });
  }
  return router;
}

async function serve(state: State, endpoint: Endpoint, handle: Handler<Endpoint>, ctx: Context): Promise<Answer> {
  const nowMs = state.time.nowMs();
  const key = authenticate(state.keys, {
    authorization: ctx.get("Authorization") || undefined,
    remoteAddress: ctx.req.socket.remoteAddress ?? "",
    nowMs,
  });
  const { rate_limits: limits } = state.settings;
  const request = { merchant: key.merchant, category: rateCategory(endpoint), nowMs };
  ctx.set(countRequest(state.rateWindows, limits, request));
  assertPermission(key, endpoint.permission);
  const space = state.merchants.get(key.merchant)?.spaces[key.mode];
  if (space === undefined) throw new Error(`no merchant ${key.merchant}`);
  // The sandbox has one form of its resources. The version is checked and echoed, and has no other effect.
  ctx.set("SVC-Version", effectiveVersion(space, ctx.get("SVC-Version")));
  const idempotency = idempotencyKey(headerOf(ctx, "x-svc-idempotency-key"), endpoint.idempotency);
  const sent = await bodyOfRequest(endpoint, ctx);
  const faults = apiFaultsFor(state, endpoint);
  const execute = async (resumes: string | null) => {
    // Under the idempotency key, so that a repeat finds the first request in progress.
    await faults.wait();
    const checked = {
      params: validate(endpoint.params, ctx["params"]),
      query: validate(endpoint.query, ctx.query),
      body: validate(endpoint.body, sent),
      resumes,
    };
    return state.time.freezeDuring(() => handle(space, checked, state));
  };
  faults.before();
  const called = `${endpoint.method} ${ctx.path}`;
  const answer =
    idempotency === null
      ? await execute(null)
      : await oncePerKey(space, { key: idempotency, endpoint: called, body: sent }, execute);
  faults.after();
  return answer;
}

async function bodyOfRequest({ method, encoding }: Endpoint, ctx: Context): Promise<unknown> {
  if (method === "GET") return {};
  return encoding === "image" ? { image: await readUpload(ctx.req) } : readJsonObject(ctx.req);
}

/** Undefined when absent. An empty header is present, and invalid. */
function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.req.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

function assertPermission(key: ApiKey, permission: Permission): void {
  if (key.permissions === "all" || key.permissions.includes(permission)) return;
  throw new ApiError("insufficient_permissions", `The API key lacks ${permission}.`);
}

const keyShape = /^svc_(test|live)_sk_[A-Za-z0-9_-]+$/;

/** The API key of a request. Throws an API error that names the fault. */
function authenticate(
  keys: ReadonlyMap<string, ApiKey>,
  request: { authorization: string | undefined; remoteAddress: string; nowMs: number },
): ApiKey {
  const { authorization, remoteAddress, nowMs } = request;
  if (authorization === undefined) {
    throw new ApiError("missing_api_key", "Send Authorization: Bearer <API key>.");
  }
  const match = /^Bearer (\S+)$/i.exec(authorization);
  if (match?.[1] === undefined || !keyShape.test(match[1])) {
    throw new ApiError("invalid_api_key_format", "The API key is malformed.");
  }
  const key = keys.get(match[1]);
  if (key === undefined) throw new ApiError("invalid_api_key", "No such API key.");
  if (key.revoked) throw new ApiError("revoked_api_key", "The API key was revoked.");
  if (key.expires_at !== null && Date.parse(key.expires_at) <= nowMs) {
    throw new ApiError("expired_api_key", "The API key has expired.");
  }
  if (key.allow !== null && !isAllowedAddress(remoteAddress, key.allow)) {
    throw new ApiError("ip_not_allowed", "The API key may not be used from this address.");
  }
  return key;
}

/** The faults of one request, at the three places where they apply. `before` and `after` throw the damaged answer. */
interface ApiFaults {
  before(): void;
  wait(): Promise<void> | undefined;
  after(): void;
}

function apiFaultsFor(state: State, endpoint: Endpoint): ApiFaults {
  const plan = drawApiFaults(state.chance.api, state.faults);
  const forced = takeForced(state.faults, endpoint);
  const strike = (spoil: DamagedAnswer | null) => {
    if (spoil !== null) throw spoiled(state, spoil);
  };
  return {
    before: () => strike(forced?.when === "before" ? forcedSpoil(forced) : plan.before),
    wait: () => (plan.slowMs > 0 ? sleep(plan.slowMs) : undefined),
    after: () => strike(forced?.when === "after" ? forcedSpoil(forced) : plan.after),
  };
}

function forcedSpoil({ code, param }: { code: string; param: string | null }): DamagedAnswer {
  return { kind: "code", code, param, retryAfterSeconds: 1 };
}

function spoiled(state: State, spoil: DamagedAnswer): Error {
  if (spoil.kind !== "code") return new SpoiledAnswer(spoil.kind);
  const { code, param, retryAfterSeconds } = spoil;
  const refusal = new ApiError(code, "This fault was ordered by PUT /_sandbox/faults.", param);
  if (statusOf(code) === 429) {
    const nowMs = state.time.nowMs();
    const endsAtMs = nowMs + retryAfterSeconds * 1000;
    refusal.headers = {
      ...rateHeaders(0, { count: 0, endsAtMs }, nowMs),
      "Retry-After": retryAfter(endsAtMs, nowMs, state.settings.rate_limits.retry_after),
    };
  }
  return refusal;
}

/** A damaged answer: a cut connection, or a proxy's page instead of JSON. Thrown by API faults. */
export class SpoiledAnswer extends Error {
  readonly kind: "cut" | "html";

  constructor(kind: "cut" | "html") {
    super(`an answer spoiled by a fault: ${kind}`);
    this.name = "SpoiledAnswer";
    this.kind = kind;
  }
}

export const proxyPage =
  "<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";
