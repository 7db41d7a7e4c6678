import Router from "@koa/router";
import type { Context } from "koa";

import type { Endpoint, EndpointRequest, Permission } from "../../service/routes/endpoint.ts";
import type { Answer } from "../answer.ts";
import { bodyOf } from "../answer.ts";
import type { ApiKey } from "../keys.ts";
import { Refusal } from "../refusal.ts";
import { findVersion } from "../rules/versions.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import { authenticate } from "./authenticate.ts";
import { idempotencyKey, onceAKey } from "./idempotency.ts";
import { readJsonObject } from "./read-body.ts";
import { validate } from "./validate.ts";

/** What an endpoint does: the space of the key, then the request; `state` for what lies beyond the space. */
export type Handler<E extends Endpoint> = (
  space: Space,
  request: EndpointRequest<E>,
  state: State,
) => Answer;

export interface Mounted {
  endpoint: Endpoint;
  handle: Handler<Endpoint>;
}

/** An endpoint with its handler, checked against each other. */
export function mounted<E extends Endpoint>(endpoint: E, handle: Handler<E>): Mounted {
  return { endpoint, handle };
}

/** A router that serves endpoints under `/v1`. The state is asked for at each request, since a reset makes a new one. */
export function createApiRouter(state: () => State, endpoints: readonly Mounted[]): Router {
  const router = new Router({ prefix: "/v1" });
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

async function serve(
  state: State,
  endpoint: Endpoint,
  handle: Handler<Endpoint>,
  ctx: Context,
): Promise<Answer> {
  const key = authenticate(state.keys, {
    authorization: ctx.get("Authorization") || undefined,
    remoteAddress: ctx.req.socket.remoteAddress ?? "",
    now: state.time.now(),
  });
  assertPermission(key, endpoint.permission);
  assertVersion(ctx.get("SVC-Version"));
  const space = state.spaces[key.mode];
  const idempotency = idempotencyKey(headerOf(ctx, "x-svc-idempotency-key"), endpoint.idempotency);
  const sent = endpoint.method === "GET" ? {} : await readJsonObject(ctx.req);
  const execute = () =>
    handle(
      space,
      {
        params: validate(endpoint.params, ctx["params"]),
        query: validate(endpoint.query, ctx.query),
        body: validate(endpoint.body, sent),
      },
      state,
    );
  if (idempotency === null) return execute();
  const called = `${endpoint.method} ${ctx.path}`;
  return onceAKey(space, { key: idempotency, endpoint: called, body: sent }, execute);
}

/** Undefined when absent; an empty header is there and wrong. */
function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.req.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

function assertPermission(key: ApiKey, permission: Permission): void {
  if (key.permissions === "all" || key.permissions.includes(permission)) return;
  throw new Refusal("insufficient_permissions", `The API key lacks ${permission}.`);
}

/** `SVC-Version` (spec, Versioning). The sandbox has one shape of its resources so far, so it is checked only. */
function assertVersion(header: string): void {
  if (header === "") return;
  const version = findVersion(header);
  if (version === undefined) {
    throw new Refusal("invalid_api_version", "No such API version.", "SVC-Version");
  }
  if (version.retired) {
    throw new Refusal("api_version_sunset", "The API version is retired.", "SVC-Version");
  }
}
