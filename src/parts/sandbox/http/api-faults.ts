import { setTimeout as sleep } from "node:timers/promises";
import type { Endpoint } from "../../../core/contract/endpoint.ts";
import { ApiError, statusOf } from "../engine/api-error.ts";
import { type DamagedAnswer, drawApiFaults, takeForced } from "../engine/faults.ts";
import { rateHeaders, retryAfter } from "../engine/rate-limit.ts";
import type { State } from "../engine/state.ts";

/** The faults of one request, at the three places where they apply. `before` and `after` throw the damaged answer. */
export interface ApiFaults {
  before(): void;
  wait(): Promise<void> | undefined;
  after(): void;
}

export function apiFaultsFor(state: State, endpoint: Endpoint): ApiFaults {
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
  const refusal = new ApiError(code, "A fault of the sandbox (PUT /_sandbox/faults).", param);
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
