import type Router from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Clock } from "../../../platform/clock.ts";
import type { Log } from "../../../platform/log.ts";
import { ApiError, notFound } from "../engine/api-error.ts";
import { firstMerchant } from "../engine/keys.ts";
import type { Space } from "../engine/space.ts";
import type { StateDump } from "../engine/state-dump.ts";
import type { Merchant, State } from "../engine/state.ts";
import { isLoopbackHost } from "../../../platform/http/listen.ts";
import { readJsonObject, validate } from "../http/read-request.ts";

export interface ControlDeps {
  log: Log;
  wallClock: Clock;
  state(): State;
  /** Discards everything and starts afresh; the seed stays the same when none is given. */
  reset(seed: string | undefined): void;
  /** Replaces the current state with a saved one. Throws, and changes nothing, when that fails. */
  restore(dump: StateDump): void;
}

export interface Control<Query extends z.ZodType, Body extends z.ZodType> {
  method: "GET" | "POST" | "PUT";
  /** Below `/_sandbox`, in the router's form (`:id`). */
  path: string;
  query: Query;
  body: Body;
  run(request: {
    query: z.output<Query>;
    body: z.output<Body>;
    params: Readonly<Record<string, string>>;
    ctx: Context;
  }): unknown;
}

/** Adds a control. The return value of `run` is the answer; undefined when `run` wrote `ctx.body` itself. */
export function addControl<Query extends z.ZodType, Body extends z.ZodType>(
  router: Router,
  control: Control<Query, Body>,
): void {
  router.register(control.path, [control.method.toLowerCase()], async (ctx: Context) => {
    const sent = control.method === "GET" ? {} : await readJsonObject(ctx.req);
    const answer = await control.run({
      query: validate(control.query, ctx.query),
      body: validate(control.body, sent),
      params: ctx["params"] as Readonly<Record<string, string>>,
      ctx,
    });
    if (answer !== undefined) ctx.body = JSON.stringify(answer);
  });
}

/**
 * Refuses requests from other machines, those that come through a proxy or under a foreign host name, and those with an
 * API key: a client of the service must not reach the controls with its key.
 */
export function assertLocal(ctx: Context): void {
  const address = ctx.req.socket.remoteAddress ?? "";
  const isLocal = /^(::ffff:)?127\.|^::1$/.test(address) && isLoopbackHost(ctx.hostname);
  if (!isLocal || ctx.get("Forwarded") !== "" || ctx.get("X-Forwarded-For") !== "") {
    throw new ApiError("ip_not_allowed", "Controls answer on loopback only.");
  }
  if (ctx.get("Authorization") !== "") {
    throw new ApiError("insufficient_permissions", "Controls take no API key.");
  }
}

export const nothing = z.object({});
export const seed = z.union([z.int(), z.string().max(200)]).transform(String);
export const mode = z.enum(["test", "live"]).default("test");
export const modeQuery = z.object({ mode });

/** The number of latest entries that a log shows. */
export const latest = z
  .string()
  .regex(/^\d{1,6}$/)
  .transform(Number)
  .default(1000);

/** The environment of a control: by default the first merchant's test environment. */
export const place = { merchant: z.string().max(100).default(firstMerchant), mode };

export function merchantNamed(state: Pick<State, "merchants">, id: string): Merchant {
  const merchant = state.merchants.get(id);
  if (merchant === undefined) throw notFound("merchant", "merchant");
  return merchant;
}

export function spaceAt(
  state: Pick<State, "merchants">,
  { merchant, mode: environment }: { merchant: string; mode: "test" | "live" },
): Space {
  return merchantNamed(state, merchant).spaces[environment];
}
