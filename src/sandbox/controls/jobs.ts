import type Router from "@koa/router";
import { z } from "zod";

import { modes } from "../mode.ts";
import { billIfDue, retryIfDue } from "../operations/bill-subscription.ts";
import { settleIfDue } from "../operations/settle-sale.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

/** What one job finds to do in an environment, and does. */
const jobs: Readonly<Record<string, (space: Space, nowIso: string) => number>> = {
  billing: (space, nowIso) =>
    runFor(space, "active", ({ next_billing_date }) => isDue(next_billing_date, nowIso), billIfDue),
  dunning: (space, nowIso) =>
    runFor(space, "past_due", ({ next_retry_at }) => isDue(next_retry_at, nowIso), retryIfDue),
  // Only live sales wait for it, and only by the switch (spec, Sandbox: confirmations are immediate).
  settlement: (space) =>
    [
      ...space.transactions.inGroup("status", "pending"),
      ...space.transactions.inGroup("status", "in_progress"),
    ].filter(({ id }) => settleIfDue(space, id)).length,
};

/**
 * `POST /_sandbox/jobs/{billing|dunning|settlement}`: does now what is due now, once. The clock does the same as it moves, so that a
 * call finds nothing to do unless something was changed silently.
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
        const ran = everySpace(current).reduce(
          (sum, space) => sum + job(space, current.time.iso()),
          0,
        );
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
