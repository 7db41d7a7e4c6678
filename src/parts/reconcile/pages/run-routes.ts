import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { waitingRechecks } from "../recheck/rechecks.ts";
import { findRunById, listRuns, runSlices } from "../runs/list-runs.ts";
import { ordering, withdrawing } from "../runs/order-acts.ts";
import { type LeaseHolder, readRunLease } from "../runs/run-lease.ts";
import { type RunOrder, lastOrder, openOrder, orderTakers } from "../runs/run-orders.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import { filtersIn } from "../../../app/list.ts";
import { pageOf } from "../../../app/dashboard/elements/paging.ts";
import { PageError, type Route } from "../../../app/dashboard/route.ts";
import { framed } from "./frame.ts";
import { type Ordering, renderRun, renderRuns, runFilters } from "./runs-view.ts";

const pageSize = 50;

/** When the next nightly run is due, by the wall clock. */
export type NextRun = (now: Date) => Date;

export const runRoutes = (nextRun: NextRun): readonly Route[] => [
  {
    method: "GET",
    path: "/reconciliation/runs",
    access: "status:read",
    async answer({ db, clock, timeZone }, { query, visitor }) {
      const now = clock.now();
      const { values, problems } = filtersIn(runFilters, query);
      const [rows, ordering] = await Promise.all([
        values && listRuns(db, { ...values, limit: pageSize + 1 }),
        readOrdering(db, nextRun(now)),
      ]);
      const body = renderRuns({
        runs: rows && pageOf(rows, pageSize, ({ id }) => id),
        problems: problems ?? {},
        query,
        ordering,
        mayRun: visitor.permissions.has("reconcile:run"),
        timeZone,
        now,
      });
      return {
        kind: "page",
        title: "Runs",
        status: rows === null ? 400 : 200,
        body: framed("Runs", body),
        command: tallyhook("reconcile"),
      };
    },
  },
  {
    method: "GET",
    path: "/reconciliation/runs/:id",
    access: "status:read",
    async answer({ db, clock, timeZone }, { params }) {
      const id = params["id"] ?? "";
      const run = /^\d{1,15}$/.test(id) ? await findRunById(db, Number(id)) : null;
      if (run === null) throw new PageError(404, `There is no run ${id.slice(0, 40)}.`);
      const [slices, waiting, holder] = await Promise.all([
        runSlices(db, run.id),
        waitingRechecks(db, run.id),
        currentHolder(db),
      ]);
      const now = clock.now();
      return {
        kind: "page",
        title: `Run ${run.id}`,
        body: framed("Runs", renderRun({ run, slices, waiting, holder, timeZone, now })),
      };
    },
  },
  actRoute({
    act: ordering,
    path: "/reconciliation/runs",
    deps: ({ db, timeZone }) => ({ db, timeZone }),
    back: () => "/reconciliation/runs",
    now: lastOrderNow,
    done: ({ alive }) => ({
      to: "/reconciliation/runs",
      notice:
        alive > 0
          ? "Ordered. A worker begins it within seconds, unless another run is in progress."
          : "Ordered, but no worker runs to do it.",
    }),
  }),
  actRoute({
    act: withdrawing,
    path: "/reconciliation/orders/:order/withdraw",
    deps: ({ db }) => ({ db }),
    back: () => "/reconciliation/runs",
    now: runNow,
    done: () => ({
      to: "/reconciliation/runs",
      notice: "The order is taken back. No run begins for it.",
    }),
  }),
];

const lastOrderNow = (now: unknown): Html => {
  const { orderedBy, kind } = now as RunOrder;
  return html`<p>${orderedBy} has since ordered a run of kind ${kind}.</p>`;
};

const runNow = (now: unknown): Html => {
  const { run } = now as { run: number };
  return html`<p><a href="/reconciliation/runs/${run}">Look at run ${run}</a></p>`;
};

async function readOrdering(db: Knex, nextRunAt: Date): Promise<Ordering> {
  const [open, last, takers, holder] = await Promise.all([
    openOrder(db),
    lastOrder(db),
    orderTakers(db),
    currentHolder(db),
  ]);
  return { open, last, takers, holder, nextRunAt };
}

async function currentHolder(db: Knex): Promise<LeaseHolder | null> {
  const holder = await readRunLease(db);
  return holder === null || holder.isOver ? null : holder;
}
