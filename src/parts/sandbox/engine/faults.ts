import { z } from "zod";
import type { Endpoint } from "../../../core/contract/endpoint.ts";
import type { Random } from "../../../platform/random.ts";
import type { EventFlaw } from "./event-log.ts";

const rate = z.number().min(0).max(1);

const faultTiming = (maxMs: number) => z.number().min(0).max(60_000).default(maxMs);

/** A forced answer, instead of one drawn by a rate: for the next `times` matching requests, or for all of them. */
const forced = z.strictObject({
  /** An endpoint as the contract writes it, such as `POST /orders`; `*` is every endpoint. */
  endpoint: z.string().max(200).default("*"),
  /** Any error code of the interface. */
  code: z.string().max(100),
  param: z.string().max(100).nullable().default(null),
  /** `after`: the work is done and its answer is lost, so that only an idempotency key protects the client. */
  when: z.enum(["before", "after"]).default("before"),
  times: z.int().min(1).nullable().default(null),
});

export type ForcedAnswer = z.output<typeof forced>;

/** A fault given as a rate alone, or as a rate with its details. */
function fault<Shape extends z.ZodRawShape>(details: Shape) {
  const schema = z.strictObject({ rate: rate.default(0), ...details });
  return z.preprocess(
    (value) => (typeof value === "number" ? { rate: value } : value),
    schema.prefault({} as z.input<typeof schema>),
  );
}

/**
 * Rates are 0 to 1. `drop` to `corrupt` apply to one delivery; the last four change the content of the event. `api`
 * applies to requests to the service with a valid key.
 */
export const faultsSchema = z.strictObject({
  seed: z.union([z.int(), z.string().max(200)]).default(0),
  delivery: z
    .strictObject({
      /** Lost: never sent, never retried. */
      drop: fault({}),
      /** The same bytes are sent a second time. */
      duplicate: fault({}),
      /** Sent late, by a wall time up to `max_ms`. */
      delay: fault({ max_ms: faultTiming(300) }),
      /** Held back until later deliveries of the endpoint were answered, or for `max_ms`. */
      reorder: fault({ max_ms: faultTiming(250) }),
      /**
       * Altered after signing. `soon`: a good copy follows soon; `schedule`: a good copy follows by the retry schedule;
       * `never`: none follows.
       */
      corrupt: fault({ retry: z.enum(["soon", "schedule", "never"]).default("soon") }),
      /** An additional event of an unknown type, about the same object. */
      unknown_type: fault({}),
      /** The object gets fields that the interface does not show. */
      extra_fields: fault({}),
      /** One optional field left out. */
      missing_field: fault({}),
      /** The object is only its id. */
      thin_object: fault({}),
    })
    .prefault({}),
  api: z
    .strictObject({
      /** Answered late, by a wall time up to `max_ms`. */
      slow: fault({ max_ms: faultTiming(1000) }),
      error_500: fault({}),
      error_503: fault({}),
      error_429: fault({ retry_after_seconds: z.int().min(0).max(86_400).default(1) }),
      /** An HTML page, as a proxy sends it, instead of JSON. */
      html: fault({}),
      /** The connection is cut before any work is done. */
      cut: fault({}),
      /** The connection is cut after the work was done: the charge is made, the answer is lost. */
      cut_after: fault({}),
      force: z.array(forced).max(100).default([]),
    })
    .prefault({}),
});

export type Faults = z.output<typeof faultsSchema>;

export function noFaults(): Faults {
  return faultsSchema.parse({});
}

export interface FaultPlan {
  drop: boolean;
  duplicate: boolean;
  corrupt: boolean;
  delayMs: number;
  /** Held back until this many later deliveries were answered, or for `maxMs`. */
  reorder: { laterDeliveries: number; maxMs: number } | null;
}

const mostLaterDeliveries = 8;

export const noFault: Readonly<FaultPlan> = {
  drop: false,
  duplicate: false,
  corrupt: false,
  delayMs: 0,
  reorder: null,
};

/**
 * Draws the faults of a delivery. The number of draws is constant, so that a change of one rate does not move the other
 * faults to other deliveries under the same seed.
 */
export function drawFaults(random: Random, { delivery }: Faults): FaultPlan {
  const drop = random() < delivery.drop.rate;
  const duplicate = random() < delivery.duplicate.rate;
  const corrupt = random() < delivery.corrupt.rate;
  const isDelayed = random() < delivery.delay.rate;
  const delayMs = Math.ceil(random() * delivery.delay.max_ms);
  const isReordered = random() < delivery.reorder.rate;
  const laterDeliveries = 1 + Math.floor(random() * mostLaterDeliveries);
  return {
    drop,
    duplicate,
    corrupt,
    delayMs: isDelayed ? delayMs : 0,
    reorder: isReordered ? { laterDeliveries, maxMs: delivery.reorder.max_ms } : null,
  };
}

/** Draws the flaws of an event's content, and whether an event of an unknown type follows it. */
export function drawFlaws(random: Random, { delivery }: Faults): { flaw: EventFlaw | null; unknownType: boolean } {
  const thin = random() < delivery.thin_object.rate;
  const missing = random() < delivery.missing_field.rate;
  const extra = random() < delivery.extra_fields.rate;
  const unknownType = random() < delivery.unknown_type.rate;
  const flaw = thin ? "thin_object" : missing ? "missing_field" : extra ? "extra_fields" : null;
  return { flaw, unknownType };
}

/** The faults of a plan, by their names in the delivery log. */
export function faultNames(plan: FaultPlan): (keyof FaultPlan)[] {
  const names: (keyof FaultPlan)[] = [];
  if (plan.drop) names.push("drop");
  if (plan.duplicate) names.push("duplicate");
  if (plan.corrupt) names.push("corrupt");
  if (plan.delayMs > 0) names.push("delayMs");
  if (plan.reorder !== null) names.push("reorder");
  return names;
}

/** The faults of one request. `before` happens instead of the work, `after` to the answer once the work is done. */
export interface ApiFaultPlan {
  slowMs: number;
  before: DamagedAnswer | null;
  after: DamagedAnswer | null;
}

export type DamagedAnswer =
  | { kind: "cut" }
  | { kind: "html" }
  | { kind: "code"; code: string; param: string | null; retryAfterSeconds: number };

const noWait = { param: null, retryAfterSeconds: 1 };

/** Draws the faults of a request. The number of draws is constant, so that one rate does not move the other faults. */
export function drawApiFaults(random: Random, { api }: Faults): ApiFaultPlan {
  const isSlow = random() < api.slow.rate;
  const slowMs = Math.ceil(random() * api.slow.max_ms);
  const cut = random() < api.cut.rate;
  const html = random() < api.html.rate;
  const error500 = random() < api.error_500.rate;
  const error503 = random() < api.error_503.rate;
  const error429 = random() < api.error_429.rate;
  const cutAfter = random() < api.cut_after.rate;
  const retryAfterSeconds = api.error_429.retry_after_seconds;
  let before: DamagedAnswer | null = null;
  if (cut) before = { kind: "cut" };
  else if (html) before = { kind: "html" };
  else if (error500) before = { kind: "code", code: "internal_error", ...noWait };
  else if (error503) before = { kind: "code", code: "service_unavailable", ...noWait };
  else if (error429) {
    before = { kind: "code", code: "rate_limit_exceeded", param: null, retryAfterSeconds };
  }
  return { slowMs: isSlow ? slowMs : 0, before, after: cutAfter ? { kind: "cut" } : null };
}

/** The forced answer for an endpoint, whose remaining count is reduced by one. Null when none matches. */
export function takeForced(faults: Faults, { method, path }: Pick<Endpoint, "method" | "path">): ForcedAnswer | null {
  const { force } = faults.api;
  const fitting = force.find(
    ({ endpoint, times }) => times !== 0 && (endpoint === "*" || endpoint === `${method} ${path}`),
  );
  if (fitting === undefined) return null;
  if (fitting.times !== null) fitting.times -= 1;
  return fitting;
}
