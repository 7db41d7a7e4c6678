import type { Endpoint } from "../../service/routes/endpoint.ts";
import type { Random } from "../../platform/random.ts";
import type { Faults, ForcedAnswer } from "../faults.ts";

/** What befalls one request. `before` happens instead of the work, `after` to the answer of work that was done. */
export interface ApiFaultPlan {
  slowMs: number;
  before: Spoil | null;
  after: Spoil | null;
}

export type Spoil =
  | { kind: "cut" }
  | { kind: "html" }
  | { kind: "code"; code: string; param: string | null; retryAfterSeconds: number };

const noWait = { param: null, retryAfterSeconds: 1 };

/** Draws the fate of a request; always the same number of draws, so that one rate does not move the other faults. */
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
  let before: Spoil | null = null;
  if (cut) before = { kind: "cut" };
  else if (html) before = { kind: "html" };
  else if (error500) before = { kind: "code", code: "internal_error", ...noWait };
  else if (error503) before = { kind: "code", code: "service_unavailable", ...noWait };
  else if (error429) {
    before = { kind: "code", code: "rate_limit_exceeded", param: null, retryAfterSeconds };
  }
  return { slowMs: isSlow ? slowMs : 0, before, after: cutAfter ? { kind: "cut" } : null };
}

/** The forced answer that fits an endpoint, one time less for the next. Null when none does. */
export function takeForced(
  faults: Faults,
  { method, path }: Pick<Endpoint, "method" | "path">,
): ForcedAnswer | null {
  const { force } = faults.api;
  const fitting = force.find(
    ({ endpoint, times }) => times !== 0 && (endpoint === "*" || endpoint === `${method} ${path}`),
  );
  if (fitting === undefined) return null;
  if (fitting.times !== null) fitting.times -= 1;
  return fitting;
}
