import type { Endpoint } from "../../../core/contract/endpoint.ts";
import { validateCoupon } from "../../../core/contract/resources/coupons.ts";
import { ApiError } from "./api-error.ts";
import type { Settings } from "./settings.ts";

export type RateCategory = "read" | "write" | "coupon_validation";

type Limits = Settings["rate_limits"];

/** The category whose limit an endpoint counts against. Coupon validation has its own category. */
export function rateCategory({ method, path }: Pick<Endpoint, "method" | "path">): RateCategory {
  if (path === validateCoupon.path) return "coupon_validation";
  return method === "GET" ? "read" : "write";
}

/**
 * Counts a request against the limit of its category and that of its merchant. Returns the `RateLimit-*` headers of the
 * limit with less remaining. Throws a 429 with `Retry-After` when one is used up; such a request counts against
 * neither.
 */
export function countRequest(
  windows: RateWindows,
  limits: Limits,
  request: { merchant: string; category: RateCategory; nowMs: number },
): Record<string, string> {
  if (!limits.enabled) return {};
  const { merchant, category, nowMs } = request;
  const lengthMs = limits.window_seconds * 1000;
  const own = {
    limit: limits[category],
    window: windows.current(`${merchant} ${category}`, nowMs, lengthMs),
    code: category === "coupon_validation" ? "too_many_requests" : "rate_limit_exceeded",
  };
  const shared = {
    limit: limits.global,
    window: windows.current(merchant, nowMs, lengthMs),
    code: "global_rate_limit_exceeded",
  };
  for (const { limit, window, code } of [own, shared]) {
    if (window.count >= limit) throw tooMany(code, limit, window, nowMs, limits);
  }
  own.window.count += 1;
  shared.window.count += 1;
  const left = ({ limit, window }: typeof own) => limit - window.count;
  const nearer = left(own) <= left(shared) ? own : shared;
  return rateHeaders(nearer.limit, nearer.window, nowMs);
}

function tooMany(
  code: string,
  limit: number,
  window: RateWindow,
  nowMs: number,
  { retry_after }: Pick<Limits, "retry_after">,
): ApiError {
  const refusal = new ApiError(code, "Too many requests: wait as long as Retry-After says.");
  refusal.headers = {
    ...rateHeaders(limit, window, nowMs),
    "Retry-After": retryAfter(window.endsAtMs, nowMs, retry_after),
  };
  return refusal;
}

/** `RateLimit-Reset` is in seconds from now. */
export function rateHeaders(limit: number, window: RateWindow, nowMs: number): Record<string, string> {
  return {
    "RateLimit-Limit": String(limit),
    "RateLimit-Remaining": String(Math.max(0, limit - window.count)),
    "RateLimit-Reset": String(Math.ceil((window.endsAtMs - nowMs) / 1000)),
  };
}

/** Rounded up, so that a client that waits this long is admitted. */
export function retryAfter(atMs: number, nowMs: number, format: Limits["retry_after"]): string {
  if (format === "seconds") return String(Math.ceil((atMs - nowMs) / 1000));
  return new Date(Math.ceil(atMs / 1000) * 1000).toUTCString();
}

/** The number of requests in the current window. */
export interface RateWindow {
  count: number;
  /** Milliseconds of the sandbox's clock. */
  endsAtMs: number;
}

export interface RateWindows {
  /** The window of a key at `nowMs`; a new one if the last has ended. */
  current(key: string, nowMs: number, lengthMs: number): RateWindow;
}

/** Fixed windows, each starting with its first request. They are few: one for each merchant and category. */
export function createRateWindows(): RateWindows {
  const windows = new Map<string, RateWindow>();
  return {
    current(key, nowMs, lengthMs) {
      const known = windows.get(key);
      // After the clock was set back, a window must not end far in the future.
      if (known !== undefined && nowMs < known.endsAtMs && known.endsAtMs <= nowMs + lengthMs) {
        return known;
      }
      const fresh = { count: 0, endsAtMs: nowMs + lengthMs };
      windows.set(key, fresh);
      return fresh;
    },
  };
}
