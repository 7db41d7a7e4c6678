import { setTimeout as sleep } from "node:timers/promises";

import type { Endpoint } from "../../service/routes/endpoint.ts";
import { Refusal } from "../refusal.ts";
import type { State } from "../state.ts";
import type { Spoil } from "./api-fault-plan.ts";
import { drawApiFaults, takeForced } from "./api-fault-plan.ts";
import { statusOf } from "./errors.ts";
import { rateHeaders, retryAfter } from "./rate-limit.ts";
import { SpoiledAnswer } from "./spoiled-answer.ts";

/** The faults of one request, at the three places where they strike. `before` and `after` throw what spoils the answer. */
export interface ApiFaults {
  before(): void;
  wait(): Promise<void> | undefined;
  after(): void;
}

export function apiFaultsFor(state: State, endpoint: Endpoint): ApiFaults {
  const plan = drawApiFaults(state.chance.api, state.faults);
  const forced = takeForced(state.faults, endpoint);
  const strike = (spoil: Spoil | null) => {
    if (spoil !== null) throw spoiled(state, spoil);
  };
  return {
    before: () => strike(forced?.when === "before" ? forcedSpoil(forced) : plan.before),
    wait: () => (plan.slowMs > 0 ? sleep(plan.slowMs) : undefined),
    after: () => strike(forced?.when === "after" ? forcedSpoil(forced) : plan.after),
  };
}

function forcedSpoil({ code, param }: { code: string; param: string | null }): Spoil {
  return { kind: "code", code, param, retryAfterSeconds: 1 };
}

function spoiled(state: State, spoil: Spoil): Error {
  if (spoil.kind !== "code") return new SpoiledAnswer(spoil.kind);
  const { code, param, retryAfterSeconds } = spoil;
  const refusal = new Refusal(code, "A fault of the sandbox (PUT /_sandbox/faults).", param);
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
