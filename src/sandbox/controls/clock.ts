import type Router from "@koa/router";
import { z } from "zod";

import { Refusal } from "../refusal.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

const tenYearsSeconds = 10 * 366 * 86_400;

const move = z.strictObject({
  advance_seconds: z.number().nonnegative().max(tenYearsSeconds).optional(),
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
      if (now !== undefined) await current.time.setNow(new Date(now));
      if (advance_seconds !== undefined) {
        await current.time.advance(Math.round(advance_seconds * 1000));
      }
      await current.idle();
      return clockBody(current);
    },
  });
}
