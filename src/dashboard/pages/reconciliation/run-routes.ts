import type { Knex } from "knex";
import { recordAct } from "../../../people/audit.ts";
import { instantsOf } from "../../../platform/local-time.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { html } from "../../../platform/html.ts";
import { findRunById, listRuns, runSlices } from "../../../reconcile/runs/list-runs.ts";
import { type LeaseHolder, readRunLease } from "../../../reconcile/runs/run-lease.ts";
import {
  type NewOrder,
  type Withdrawal,
  lastOrder,
  openOrder,
  orderRun,
  orderTakers,
  orderedKinds,
  withdrawOrder,
} from "../../../reconcile/runs/run-orders.ts";
import { waitingRechecks } from "../../../reconcile/recheck/rechecks.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import { pageOf } from "../../parts/paging.ts";
import { PageError, type Route } from "../../route.ts";
import { framed } from "./frame.ts";
import { type Ordering, renderRun, renderRuns } from "./runs-view.ts";
import { kindMeanings, runTones } from "./words.ts";

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
      const before = query.get("before") ?? "";
      const kind = oneOf(kindMeanings, query.get("kind"));
      const state = oneOf(runTones, query.get("state"));
      const [rows, ordering] = await Promise.all([
        listRuns(db, {
          kind,
          state,
          before: /^\d{1,15}$/.test(before) ? Number(before) : undefined,
          limit: pageSize + 1,
        }),
        readOrdering(db, nextRun(now)),
      ]);
      const body = renderRuns({
        runs: pageOf(rows, pageSize, ({ id }) => id),
        query,
        ordering,
        mayRun: visitor.permissions.has("reconcile:run"),
        timeZone,
        now,
      });
      return {
        kind: "page",
        title: "Runs",
        body: framed("Runs", body),
        command: "node src/bin/tallyhook.js reconcile",
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
  {
    method: "POST",
    path: "/reconciliation/runs",
    access: "reconcile:run",
    async answer({ db, timeZone }, { form, actor }) {
      const order = readOrder(form, actor.name, timeZone);
      await inTransaction(db, async (trx) => {
        const last = await lastOrder(trx);
        const isCurrent = versionOf(form) === String(last?.id ?? 0);
        const made = isCurrent ? await orderRun(trx, order) : null;
        if (made === null) {
          throw outdated(
            "What was ordered last",
            last === null
              ? null
              : html`<p>${last.orderedBy} ordered a run of kind ${last.kind} meanwhile.</p>
                  <p><a href="/reconciliation/runs">See the runs</a></p>`,
          );
        }
        await recordAct(trx, actor, {
          action: "run.ordered",
          subject: { kind: "run-order", id: String(made.id) },
          after: {
            kind: order.kind,
            rangeFrom: order.rangeFrom,
            rangeTo: order.rangeTo,
            reportOnly: order.reportOnly,
          },
        });
      });
      const { alive } = await orderTakers(db);
      return {
        kind: "redirect",
        to: "/reconciliation/runs",
        notice:
          alive > 0
            ? "Ordered. A worker begins it within seconds, unless another run is at work."
            : "Ordered, and nobody is there to do it: no worker runs.",
      };
    },
  },
  {
    method: "POST",
    path: "/reconciliation/orders/:id/withdraw",
    access: "reconcile:run",
    async answer({ db }, { params, actor }) {
      const id = params["id"] ?? "";
      await inTransaction(db, async (trx) => {
        const done = /^\d{1,15}$/.test(id) ? await withdrawOrder(trx, Number(id)) : null;
        if (done?.outcome !== "withdrawn") throw notWithdrawn(id, done);
        await recordAct(trx, actor, {
          action: "run.withdrawn",
          subject: { kind: "run-order", id },
        });
      });
      return {
        kind: "redirect",
        to: "/reconciliation/runs",
        notice: "The order is taken back. No run begins for it.",
      };
    },
  },
];

/** Why an order was not taken back. Pure. */
function notWithdrawn(
  id: string,
  done: Exclude<Withdrawal, { outcome: "withdrawn" }> | null,
): PageError {
  if (done === null) return new PageError(404, `There is no order ${id.slice(0, 40)}.`);
  if (done.outcome === "begun") {
    return new PageError(
      409,
      `A worker was faster: run ${done.run} has begun for this order, so it was not taken back.`,
      {
        details: html`<p>
          <a href="/reconciliation/runs/${done.run}">Look at run ${done.run}</a>
        </p>`,
      },
    );
  }
  const ends = {
    done: "The run of this order has ended, so it was not taken back.",
    failed: "The run of this order has failed, so there is nothing to take back.",
    withdrawn: "This order was taken back before. No run begins for it.",
  };
  return new PageError(409, ends[done.as], {
    details: html`<p><a href="/reconciliation/runs">See the runs</a></p>`,
  });
}

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

/** Throws `PageError` for a form that orders nothing that can be done. */
function readOrder(form: URLSearchParams, orderedBy: string, timeZone: string): NewOrder {
  const kind = orderedKinds.find((known) => known === form.get("kind"));
  if (kind === undefined) throw new PageError(400, "Say what the run is to read.");
  const [rangeFrom, rangeTo] = ["from", "to"].map((name) =>
    kind === "range" ? readTime(form.get(name) ?? "", timeZone) : null,
  ) as [Date | null, Date | null];
  if (kind === "range" && rangeFrom === null && rangeTo === null) {
    throw new PageError(400, "Say at least one of the two times: from when, or before when.");
  }
  if (rangeFrom !== null && rangeTo !== null && rangeFrom >= rangeTo) {
    throw new PageError(400, "The first time must be before the second.");
  }
  return { kind, rangeFrom, rangeTo, reportOnly: form.get("report-only") === "yes", orderedBy };
}

/** Of a field for a local time; null where it is empty. Throws `PageError`. */
function readTime(text: string, timeZone: string): Date | null {
  if (text === "") return null;
  const [, year, month, day, hour, minute] =
    /^([12]\d{3})-(\d\d)-(\d\d)T(\d\d):(\d\d)/.exec(text) ?? [];
  const parts = { year, month, day, hour, minute };
  const [at] =
    minute === undefined
      ? []
      : instantsOf(
          Object.fromEntries(
            Object.entries(parts).map(([name, part]) => [name, Number(part)]),
          ) as unknown as Parameters<typeof instantsOf>[0],
          timeZone,
        );
  if (at !== undefined) return at;
  throw new PageError(400, `"${text.slice(0, 40)}" is no time. Use one such as 2026-11-03T14:00.`);
}

const oneOf = <Name extends string>(
  names: Readonly<Record<Name, unknown>>,
  text: string | null,
): Name | undefined => (text !== null && Object.hasOwn(names, text) ? (text as Name) : undefined);
