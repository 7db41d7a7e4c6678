import { recipientSubject, versionOfRun } from "../dispatch/acts.ts";
import type { HandlerHealth } from "../../../app/answers.ts";
import { type HandlerRow, mostCounted } from "../dispatch/manage-handlers.ts";
import { type ListedRun, type OpenRunRow, mostHeldUp, runStates } from "../dispatch/open-runs.ts";
import { shortLine } from "../../../platform/free-text.ts";
import { type Html, html } from "../../../platform/html.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { type Problems, filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { oneOf, optional } from "../../../app/people/fields.ts";
import { shortId, outside, type Tone, state, time } from "../../../app/dashboard/elements/values.ts";
import { type PageOf, withQuery } from "../../../app/dashboard/elements/paging.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { behindText } from "./list-view.ts";
import { type RecipientWords, countText, recipientPath, recipientState } from "./recipient-words.ts";

export interface HandlerPage {
  row: HandlerRow;
  words: RecipientWords;
  health: HandlerHealth | null;
  /** The person who paused it on the dashboard; null where it runs, or was paused on the command line. */
  pausedBy: string | null;
  /** Null: the filter could not be read. */
  runs: PageOf<OpenRunRow | ListedRun> | null;
  problems: Problems;
  query: URLSearchParams;
  mayWrite: boolean;
  readsTexts: boolean;
  now: Date;
  timeZone: string;
}

export const renderHandler = (page: HandlerPage): Html =>
  html`${renderFacts(page)} ${page.mayWrite && renderActions(page)} ${renderRuns(page)}`;

function renderFacts({ row, words, health, pausedBy, readsTexts, now, timeZone }: HandlerPage): Html {
  const at = (moment: Date | null) => (moment === null ? "never" : time(moment, timeZone));
  return html`<section class="card">
    <div class="row">
      <h2>${outside(words.name, 80)}</h2>
      ${recipientState(row, { readsTexts })}
    </div>
    <dl class="facts">
      ${
        row.paused_at !== null &&
        html`<dt>Paused</dt>
          <dd>${time(row.paused_at, timeZone)}${pausedBy !== null && html` by ${outside(pausedBy)}`}</dd>`
      }
      <dt>Dead</dt>
      <dd>
        ${countText(row.dead, mostCounted)}${row.dead > 0 && html`. Each holds up the later ${words.items} of its object.`}
      </dd>
      <dt>Waiting</dt>
      <dd>${countText(row.waiting, mostCounted)}</dd>
      <dt>Not read yet</dt>
      <dd>${behindText(row, health, now)}</dd>
      <dt>Done</dt>
      <dd>${row.done}, the last ${at(row.last_done_at)}</dd>
      <dt>Failed attempts</dt>
      <dd>${row.failed}, the last ${at(row.last_failed_at)}</dd>
      ${
        row.postponed > 0 &&
        html`<dt>Put off</dt>
          <dd>${row.postponed} times, by RetryLater</dd>`
      }
      <dt>Position</dt>
      <dd>${row.position}</dd>
    </dl>
  </section>`;
}

function renderActions({ row }: HandlerPage): Html {
  const path = recipientPath(row.name);
  const version = decidedOn(recipientSubject.version(row));
  return html`<div class="cards">
    ${
      row.dead > 0 &&
      html`<div class="card">
        <h2>Retry all that is dead</h2>
        <p>Each gets all its attempts again, once the cause is gone.</p>
        <a class="button second" href="${path}/retry-dead">Retry all…</a>
      </div>`
    }
    ${
      row.paused_by !== null &&
      html`<form class="card" method="post" action="${path}/resume">
        <h2>Resume</h2>
        ${version}
        <p>It continues where it stopped, and failed changes are tried immediately.</p>
        <button>Resume</button>
      </form>`
    }
    ${
      row.paused_by !== "person" &&
      html`<form class="card" method="post" action="${path}/pause">
        <h2>Pause</h2>
        ${version}
        <label for="reason">Why <span class="hint">shown in the list; name no customer</span></label>
        <input id="reason" name="reason" maxlength="${shortLine.longest}" required />
        <p class="hint">It starts nothing more until it is resumed. Nothing is lost.</p>
        <button class="second">Pause</button>
      </form>`
    }
  </div>`;
}

const filterWords: Readonly<Record<(typeof runStates)[number], string>> = {
  dead: "dead",
  failed: "failed, to be tried again",
  waiting: "waiting and running",
};

export const runFilters = {
  state: {
    is: optional(oneOf(runStates)),
    label: "State",
    unset: "all, the dead first",
    choices: runStates.map((name) => [name, filterWords[name]] as const),
  },
};

function renderRuns(page: HandlerPage): Html {
  const { row, words, runs, query, problems, mayWrite, timeZone } = page;
  const path = recipientPath(row.name);
  const form = filterForm(path, query, runFilters, { problems });
  if (runs === null) return form;
  return html`${form}
  ${table<OpenRunRow>(
    [
      { name: "Number", kind: "number", cell: ({ seq }) => seq },
      {
        name: "Object",
        cell: (run) =>
          html`${objectLink(run)}
            <p class="hint">${outside(run.kind, 80)}</p>`,
      },
      { name: "State", cell: (run) => runState(run) },
      {
        name: "Attempts",
        kind: "number",
        cell: ({ attempts, postponed }) =>
          html`${attempts}${postponed > 0 && html`<p class="hint">put off ${postponed} times</p>`}`,
      },
      { name: "Error", cell: ({ error }) => renderError(error, words) },
      {
        name: "Failed, and next",
        cell: ({ failed_at: failed, due_at: due }) =>
          html`${failed !== null && html`<p>${time(failed, timeZone)}</p>`}
          ${due !== null && html`<p class="hint">next ${time(due, timeZone)}</p>`}`,
      },
      { name: "Holds up", kind: "number", cell: ({ holds_up: n }) => countText(n, mostHeldUp) },
      ...(mayWrite ? [{ name: "Do", cell: (run: OpenRunRow) => renderRunActions(run, path) }] : []),
    ],
    runs.rows,
    {
      caption: `${words.items.charAt(0).toUpperCase()}${words.items.slice(1)} that it has not done`,
      empty: query.has("state")
        ? html`None is in this state. <a href="${path}">Show all</a>`
        : html`It has done all that it has read.`,
    },
  )}
  ${renderMore(runs, page, path)}`;
}

/** Without a state the first ones are shown, as the command does. */
function renderMore(runs: PageOf<unknown>, { query, words }: HandlerPage, path: string): Html | null {
  if (!query.has("state")) {
    return runs.older === null
      ? null
      : html`<p class="hint">These are the first ${runs.rows.length} ${words.items}. Choose a state to go on.</p>`;
  }
  if (runs.older === null && !query.has("after")) return null;
  return html`<nav class="pager" aria-label="Pages of the list">
    ${query.has("after") ? html`<a href="${withQuery(path, query, { after: null })}">First</a>` : html`<span></span>`}
    ${runs.older !== null && html`<a rel="next" href="${withQuery(path, query, { after: runs.older })}">Next</a>`}
  </nav>`;
}

const objectLink = ({ resource, id }: OpenRunRow): Html =>
  html`${resource} <a href="/objects/${encodeURIComponent(resource)}/${encodeURIComponent(id)}">${shortId(id)}</a>`;

export function runState({ state: is, is_running: isRunning, failed_at: failedAt }: OpenRunRow): Html {
  const [words, tone]: [string, Tone] = isRunning
    ? ["running", "calm"]
    : is === "dead"
      ? ["dead", "bad"]
      : failedAt === null
        ? ["waiting", "calm"]
        : ["failed", "warn"];
  return state(words, tone);
}

/** Errors of the merchant's code can be anything; our own are explained. */
export function renderError(error: string | null, { ownErrors }: RecipientWords): Html | null {
  if (error === null) return null;
  const meaning = Object.hasOwn(ownErrors, error) ? ownErrors[error] : undefined;
  return html`${outside(error)}${meaning !== undefined && html`<p class="hint">${meaning}.</p>`}`;
}

function renderRunActions(run: OpenRunRow, path: string): Html | null {
  if (run.is_running) return null;
  const at = `${path}/runs/${run.seq}`;
  return html`<form method="post" action="${at}/retry">
      ${decidedOn(versionOfRun(run))}<button class="plain" aria-label="Retry ${run.seq}">Retry</button>
    </form>
    <a href="${at}/skip" aria-label="Skip ${run.seq}">Skip…</a>`;
}
