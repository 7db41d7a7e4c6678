import type Router from "@koa/router";
import { z } from "zod";
import { ApiError, invalidValue } from "../engine/api-error.ts";
import type { SandboxClock } from "../engine/clock.ts";
import { modes } from "../engine/keys.ts";
import type { Space } from "../engine/space.ts";
import type { State } from "../engine/state.ts";
import { settleIfDue } from "../resources/orders/charge-order.ts";
import { billIfDue, retryIfDue } from "../resources/subscriptions/bill-subscription.ts";
import type { SubscriptionRecord } from "../resources/subscriptions/subscription.ts";
import { type ControlDeps, addControl, nothing } from "./control.ts";
import { clockBody } from "./overview.ts";

const yearSeconds = 366 * 86_400;
const longestAdvanceSeconds = 10 * yearSeconds;
/** The longest advance. `now` may go further: 24 cycles of a yearly plan are 24 years. */
const longestJumpMs = 100 * yearSeconds * 1000;
/** The latest time. Later years are written with a sign and six digits, which few programs read. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const move = z.strictObject({
  advance_seconds: z.number().nonnegative().max(longestAdvanceSeconds).optional(),
  now: z.iso.datetime({ offset: true }).optional(),
});

/**
 * `POST /_sandbox/clock`: `advance_seconds` shifts the clock, which keeps running if it ran; `now` makes it manual.
 * Answers when the jobs that fell due are done, including the deliveries that they caused.
 */
export function addClock(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/clock",
    query: nothing,
    body: move,
    async run({ body: { advance_seconds, now } }) {
      const current = state();
      if ((advance_seconds === undefined) === (now === undefined)) {
        throw new ApiError("validation_error", "Send either advance_seconds or now.");
      }
      const nowMs = current.time.nowMs();
      const targetMs = now === undefined ? nowMs + (advance_seconds ?? 0) * 1000 : Date.parse(now);
      assertReachable(current.time, targetMs);
      if (now !== undefined) await current.time.setNow(new Date(targetMs));
      if (advance_seconds !== undefined) {
        await current.time.advance(Math.round(advance_seconds * 1000));
      }
      await current.idle();
      return clockBody(current);
    },
  });
}

/**
 * Refuses a time that is too far away. Planned jobs run on the way: over centuries a single subscription would keep the
 * sandbox busy without end.
 */
function assertReachable(time: SandboxClock, targetMs: number): void {
  const param = "now";
  if (targetMs > lastMs) throw invalidValue(param, "the clock ends with the year 9999");
  if (targetMs - time.nowMs() <= longestJumpMs || time.planned().length === 0) return;
  throw invalidValue(param, "jobs are planned: move the clock by at most a hundred years at a time");
}

/** Each runs an environment's due work of one kind, and returns the number of items. */
const jobs: Readonly<Record<string, (space: Space, nowIso: string) => number>> = {
  billing: (space, nowIso) =>
    runFor(space, "active", ({ next_billing_date }) => isDue(next_billing_date, nowIso), billIfDue),
  dunning: (space, nowIso) =>
    runFor(space, "past_due", ({ next_retry_at }) => isDue(next_retry_at, nowIso), retryIfDue),
  // Only live sales wait for it, and only if `live_settlement_days` is set: test sales are confirmed immediately.
  settlement: (space) =>
    [...space.transactions.inGroup("status", "pending"), ...space.transactions.inGroup("status", "in_progress")].filter(
      ({ id }) => settleIfDue(space, id),
    ).length,
};

/**
 * `POST /_sandbox/jobs/{billing|dunning|settlement}`: runs the due work once. The clock does the same as it moves, so
 * that a call finds work only after a silent change.
 */
export function addJobs(router: Router, { state }: ControlDeps): void {
  for (const [name, job] of Object.entries(jobs)) {
    addControl(router, {
      method: "POST",
      path: `/jobs/${name}`,
      query: nothing,
      body: z.object({}),
      async run() {
        const current = state();
        const ran = everySpace(current).reduce((sum, space) => sum + job(space, current.time.iso()), 0);
        await current.idle();
        return { job: name, ran, ...clockBody(current) };
      },
    });
  }
}

function everySpace({ merchants }: State): Space[] {
  return Array.from(merchants.values()).flatMap(({ spaces }) => modes.map((mode) => spaces[mode]));
}

function runFor(
  space: Space,
  status: SubscriptionRecord["status"],
  isWanted: (subscription: SubscriptionRecord) => boolean,
  run: (space: Space, id: string) => void,
): number {
  const due = space.subscriptions.inGroup("status", status).filter(isWanted);
  for (const { id } of due) run(space, id);
  return due.length;
}

function isDue(at: string | null, nowIso: string): boolean {
  return at !== null && Date.parse(at) <= Date.parse(nowIso);
}

/**
 * `GET /_sandbox/idle`: answers when nothing is due or in progress; later retries do not count. 503 after
 * `timeout_seconds`.
 */
export function addIdle(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/idle",
    query: z.object({
      timeout_seconds: z
        .string()
        .regex(/^\d{1,4}$/)
        .transform(Number)
        .default(120),
    }),
    body: nothing,
    async run({ query }) {
      const current = state();
      let timer: NodeJS.Timeout | undefined;
      const timeout = new Promise<"timeout">((resolve) => {
        timer = setTimeout(() => resolve("timeout"), query.timeout_seconds * 1000);
      });
      const first = await Promise.race([current.idle(), timeout]);
      clearTimeout(timer);
      if (first === "timeout") {
        const { pending } = current.dispatcher;
        throw new ApiError("service_unavailable", `Not idle yet: ${pending} deliveries pending.`);
      }
      return { idle: true, ...clockBody(current) };
    },
  });
}
