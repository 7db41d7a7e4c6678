import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { moneyText } from "../../../platform/money.ts";
import { counted, durationText, withoutControls } from "../../../platform/readable-text.ts";
import { sum } from "../runs/finish-run.ts";
import type { RunRow, RunSlice } from "../runs/list-runs.ts";
import { runKinds, runStates } from "../runs/runs.ts";
import type { LeaseHolder } from "../runs/run-lease.ts";
import type { OrderTakers, RunOrder } from "../runs/run-orders.ts";
import type { WaitingRechecks } from "../recheck/rechecks.ts";
import { before } from "../../../app/list.ts";
import { oneOf, optional } from "../../../app/people/fields.ts";
import { type Problems, filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { type PageOf, pager } from "../../../app/dashboard/elements/paging.ts";
import { state, time, timeText, ago } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { runLink } from "./frame.ts";
import { kindMeanings, listName, runTones } from "./words.ts";

/** There is no command that lists them. */
export const runFilters = {
  kind: { is: optional(oneOf(runKinds)), label: "Kind", unset: "all" },
  state: { is: optional(oneOf(runStates)), label: "State", unset: "all" },
  before: { is: before.is },
};

export interface RunsPage {
  /** Null: the filters could not be read. */
  runs: PageOf<RunRow> | null;
  problems: Problems;
  query: URLSearchParams;
  ordering: Ordering;
  mayRun: boolean;
  timeZone: string;
  /** The wall clock. */
  now: Date;
}

/** Runs to come and the workers that take orders. */
export interface Ordering {
  open: RunOrder | null;
  last: RunOrder | null;
  takers: OrderTakers;
  /** The process that is reconciling; null: none. */
  holder: LeaseHolder | null;
  nextRunAt: Date;
}

export function renderRuns({ runs, problems, query, ordering, mayRun, timeZone, now }: RunsPage): Html {
  return html`${renderOrdering(ordering, { mayRun, timeZone })}
  ${filterForm("/reconciliation/runs", query, runFilters, { problems })}
  ${runs !== null && renderList(runs, { query, timeZone, now })}`;
}

const renderList = (runs: PageOf<RunRow>, { query, timeZone, now }: Pick<RunsPage, "query" | "timeZone" | "now">) =>
  html`${table<RunRow>(
    [
      { name: "Run", cell: ({ id }) => runLink(id) },
      { name: "Began", cell: ({ startedAt }) => ago(startedAt, timeZone) },
      { name: "Kind", cell: kindText },
      { name: "State", cell: (run) => state(run.state, runTones[run.state]) },
      { name: "Took", kind: "number", cell: (run) => tookText(run, now) },
      { name: "Read", kind: "number", cell: ({ totals }) => count(totals?.rows) },
      { name: "Healed", kind: "number", cell: ({ totals }) => count(totals?.healed) },
      { name: "Left", kind: "number", cell: ({ totals }) => count(totals?.left) },
      { name: "Calls", kind: "number", cell: ({ totals }) => totals?.calls ?? "–" },
      { name: "Error", cell: ({ error }) => (error === null ? "" : withoutControls(error)) },
    ],
    runs.rows,
    {
      caption: "Newest first",
      empty:
        query.size === 0
          ? html`No run yet. Fill the mirror and prove it: <code>${tallyhook("import")}</code>`
          : html`No run matches. <a href="/reconciliation/runs">Show all</a>`,
    },
  )}
  ${pager("/reconciliation/runs", query, runs.older)}`;

const count = (counts: Readonly<Record<string, number>> | undefined): string =>
  counts === undefined ? "–" : String(sum(counts));

const kindText = ({ kind, reportOnly }: RunRow): string => (reportOnly ? `${kind}, only reports` : kind);

function tookText({ state: name, startedAt, finishedAt }: RunRow, now: Date): string {
  if (name === "running") return `since ${durationText(now.getTime() - startedAt.getTime())}`;
  return finishedAt === null ? "–" : durationText(finishedAt.getTime() - startedAt.getTime());
}

function renderOrdering(
  { open, last, takers, holder, nextRunAt }: Ordering,
  { mayRun, timeZone }: { mayRun: boolean; timeZone: string },
): Html {
  return html`<section class="card">
    <h2>Next</h2>
    <dl class="facts">
      <dt>Scheduled</dt>
      <dd>${ago(nextRunAt, timeZone)}</dd>
      <dt>Running</dt>
      <dd>
        ${holder === null ? "no run" : html`process ${holder.pid} on ${withoutControls(holder.host)}, since ${time(holder.since, timeZone)}`}
      </dd>
      <dt>Workers</dt>
      <dd>${workersText(takers, timeZone)}</dd>
      ${open !== null && renderOpen(open, { takers, holder, mayRun, timeZone })}
      ${
        open === null &&
        last?.outcome === "failed" &&
        html`<dt>Last order</dt>
          <dd>
            of ${withoutControls(last.orderedBy)}, ${time(last.orderedAt, timeZone)}: it failed.
            ${withoutControls(last.error ?? "")}
          </dd>`
      }
    </dl>
    ${open === null && mayRun && renderOrderForm({ last, takers, timeZone })}
  </section>`;
}

const workersText = ({ alive, lastSeenAt }: OrderTakers, timeZone: string): Html =>
  alive > 0
    ? html`${counted(alive, "worker runs", "workers run")}`
    : html`<strong>no worker runs</strong
        >${lastSeenAt !== null && html`; the last one was seen ${ago(lastSeenAt, timeZone)}`}. Start one:
        <code>${tallyhook("worker")}</code>`;

function renderOpen(
  order: RunOrder,
  {
    takers,
    holder,
    mayRun,
    timeZone,
  }: { takers: OrderTakers; holder: LeaseHolder | null; mayRun: boolean; timeZone: string },
): Html {
  const wait =
    takers.alive === 0
      ? "It waits: no worker runs."
      : holder === null
        ? "A worker begins it within seconds."
        : "It is running, or waits for the current run to end.";
  return html`<dt>Ordered</dt>
    <dd>
      ${orderText(order, timeZone)} by ${withoutControls(order.orderedBy)}, ${time(order.orderedAt, timeZone)}. ${wait}
      ${
        mayRun &&
        html`<form method="post" action="/reconciliation/orders/${order.id}/withdraw">
          <button class="plain">Take the order back</button>
        </form>`
      }
    </dd>`;
}

function orderText({ kind, rangeFrom, rangeTo, reportOnly }: RunOrder, timeZone: string): string {
  const from = rangeFrom === null ? "" : ` from ${timeText(rangeFrom, timeZone)}`;
  const to = rangeTo === null ? "" : ` to ${timeText(rangeTo, timeZone)}`;
  return `a run of kind ${kind}${from}${to}${reportOnly ? ", only reporting" : ""}`;
}

function renderOrderForm({
  last,
  takers,
  timeZone,
}: {
  last: RunOrder | null;
  takers: OrderTakers;
  timeZone: string;
}): Html {
  return html`<details ${last?.outcome === "failed" && isOpen}>
    <summary>Run now</summary>
    <form method="post" action="/reconciliation/runs" class="form-parts">
      ${decidedOn(last?.id ?? 0)}
      ${
        takers.alive === 0 &&
        html`<p class="problem">
          No worker runs, so an order waits until one does. Without a worker:
          <code>${tallyhook("reconcile")}</code>
        </p>`
      }
      <fieldset>
        <legend>Scope</legend>
        <label class="option"
          ><input type="radio" name="kind" value="nightly" required checked /> As every night: what is new, what is
          open, a part of the history</label
        >
        <label class="option"
          ><input type="radio" name="kind" value="full" required /> Everything from the first record on: many calls to
          the service</label
        >
        <label class="option"
          ><input type="radio" name="kind" value="range" required /> What was created between two times</label
        >
      </fieldset>
      <div class="filters">
        <div>
          <label for="from">From (${timeZone})</label>
          <input type="datetime-local" id="from" name="from" />
        </div>
        <div>
          <label for="to">Before (${timeZone})</label>
          <input type="datetime-local" id="to" name="to" />
        </div>
      </div>
      <label class="option"
        ><input type="checkbox" name="report-only" value="yes" /> Only report: record findings, change nothing in the
        mirror</label
      >
      <button>Order the run</button>
    </form>
  </details>`;
}

const isOpen: Html = html`open`;

export interface RunPage {
  run: RunRow;
  slices: readonly RunSlice[];
  waiting: WaitingRechecks;
  /** The process that is reconciling; null: none, so a run without an end was interrupted. */
  holder: LeaseHolder | null;
  timeZone: string;
  now: Date;
}

export function renderRun({ run, slices, waiting, holder, timeZone, now }: RunPage): Html {
  const { totals, error } = run;
  return html`<section class="card">
      <div class="row">
        <h2>${kindText(run)}</h2>
        ${state(run.state, runTones[run.state])}
      </div>
      <p class="lead">${kindMeanings[run.kind]}${run.isInitialImport && "; it filled the mirror"}</p>
      ${error !== null && html`<p class="problem">${withoutControls(error)}</p>`}
      ${run.state === "running" && renderProgress({ slices, waiting, holder, timeZone })}
      <dl class="facts">
        <dt>Answers for</dt>
        <dd>${scopeOf(run, timeZone)}</dd>
        <dt>Began</dt>
        <dd>${time(run.startedAt, timeZone)}</dd>
        <dt>Ended</dt>
        <dd>${run.finishedAt === null ? "not yet" : time(run.finishedAt, timeZone)}, ${tookText(run, now)}</dd>
        ${totals !== null && renderTotals(totals)}
      </dl>
      <p>
        <a href="/reconciliation/findings?run=${run.id}&amp;state=any">Findings that it saw last</a>
      </p>
    </section>
    ${table<RunSlice>(
      [
        { name: "List", cell: ({ resource }) => listName(resource) },
        { name: "Created", cell: (slice) => boundsText(slice, timeZone) },
        { name: "Why", cell: ({ reason }) => withoutControls(reason) },
        {
          name: "State",
          cell: ({ state: name, readAt }) =>
            html`${state(sliceStates[name].text, sliceStates[name].tone)}
            ${readAt !== null && html`<p class="hint">${time(readAt, timeZone)}</p>`}`,
        },
        { name: "Pages", kind: "number", cell: ({ pages }) => pages },
        { name: "Objects", kind: "number", cell: ({ rows }) => rows },
        { name: "Compared", cell: ({ tally }) => listed(tally) },
        { name: "Note", cell: ({ note }) => (note === null ? "" : withoutControls(note)) },
      ],
      slices,
      { caption: "What it read", empty: html`It read nothing.` },
    )}`;
}

const sliceStates = {
  pending: { text: "to be read", tone: "calm" },
  complete: { text: "read", tone: "good" },
  skipped: { text: "left out", tone: "calm" },
  failed: { text: "not proved", tone: "bad" },
} as const;

function renderProgress({
  slices,
  waiting,
  holder,
  timeZone,
}: Pick<RunPage, "slices" | "waiting" | "holder" | "timeZone">): Html {
  const done = slices.filter(({ state: name }) => name !== "pending").length;
  const pages = slices.reduce((all, slice) => all + slice.pages, 0);
  return html`<div>
    <label for="progress">${done} of ${counted(slices.length, "part")} read, ${counted(pages, "page")}</label>
    <progress id="progress" max="${Math.max(1, slices.length)}" value="${done}"></progress>
    ${
      waiting.waiting > 0 &&
      html`<p>
        ${counted(waiting.waiting, "object waits", "objects wait")} to be read
        again${waiting.lastDueAt !== null && html`, the last at ${time(waiting.lastDueAt, timeZone)}`}: their events may
        still be on the way.
      </p>`
    }
    ${
      holder === null &&
      html`<p class="problem">
        It was interrupted, and no process continues it. A worker resumes nightly and ordered runs by itself; run the
        same command again to resume any other.
      </p>`
    }
  </div>`;
}

function scopeOf({ kind, rangeFrom, rangeTo, t0 }: RunRow, timeZone: string): Html {
  if (kind !== "range") return html`everything created before ${time(t0, timeZone)}`;
  const from = rangeFrom === null ? "the first record" : time(rangeFrom, timeZone);
  return html`what was created from ${from} to ${time(rangeTo ?? t0, timeZone)}`;
}

function renderTotals(totals: NonNullable<RunRow["totals"]>): Html {
  const amounts = Object.entries(totals.amountAtRiskMinor).map(([code, minor]) => moneyText(minor, code));
  const rows: readonly [string, string][] = [
    ["Read", `${listed(totals.rows)}; ${counted(totals.calls, "call")}`],
    ["Compared", listed(totals.verdicts)],
    ["Read again by id", listed(totals.confirmed)],
    ["Healed", listed(totals.healed)],
    ["Differences left", listed(totals.left) + (amounts.length > 0 ? `; at risk: ${amounts.join(", ")}` : "")],
    ["Accepted differences", listed(totals.acknowledged)],
    ["Other open findings", listed(totals.otherFindings)],
  ];
  return html`${rows.map(
    ([name, value]) =>
      html`<dt>${name}</dt>
        <dd>${value}</dd>`,
  )}`;
}

const listed = (counts: Readonly<Record<string, number | undefined>>): string => {
  const parts = Object.entries(counts).filter(([, n]) => (n ?? 0) > 0);
  return parts.length === 0
    ? "0"
    : parts.map(([name, n]) => `${withoutControls(name).replaceAll("_", " ")} ${n}`).join(", ");
};

function boundsText({ from, before }: RunSlice, timeZone: string): Html {
  const start = from === null ? "from the first record" : html`from ${time(from, timeZone)}`;
  return html`${start}${before !== null && html` to ${time(before, timeZone)}`}`;
}
