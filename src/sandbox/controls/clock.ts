import type Router from "@koa/router";
import { z } from "zod";

import { invalidValue, Refusal } from "../refusal.ts";
import type { Timeline } from "../timeline.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

const yearSeconds = 366 * 86_400;
const longestAdvanceSeconds = 10 * yearSeconds;
/** `now` may go further: 24 cycles of a yearly plan are 24 years. */
const longestJumpMs = 100 * yearSeconds * 1000;
/** Later years are written with a sign and six digits, which few programs read. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const move = z.strictObject({
  advance_seconds: z.number().nonnegative().max(longestAdvanceSeconds).optional(),
  now: z.iso.datetime({ offset: true }).optional(),
});

/**
 * `POST /_sandbox/clock`: `advance_seconds` shifts the clock, which keeps running if it ran; `now` makes it manual. Answers
 * when the jobs that fell due are done, deliveries that they caused included.
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
        throw new Refusal("validation_error", "Send either advance_seconds or now.");
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

/** What is planned is done on the way: over centuries a single subscription would keep the sandbox busy for good. */
function assertReachable(time: Timeline, targetMs: number): void {
  const param = "now";
  if (targetMs > lastMs) throw invalidValue(param, "the clock ends with the year 9999");
  if (targetMs - time.nowMs() <= longestJumpMs || time.planned().length === 0) return;
  throw invalidValue(
    param,
    "there are jobs on the way: move the clock by at most a hundred years at a time",
  );
}
