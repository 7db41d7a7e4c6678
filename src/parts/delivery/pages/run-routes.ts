import type { Knex } from "knex";
import { retrying, skipping, versionOfDead, versionOfRun } from "../dispatch/acts.ts";
import { mostCounted, readHandlers } from "../dispatch/manage-handlers.ts";
import { type DeadRuns, type OpenRunRow, findRun, mostHeldUp, readDead } from "../dispatch/open-runs.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../app/dashboard/route.ts";
import { renderError, runState } from "./handler-view.ts";
import { type RecipientWords, countText, recipientPath } from "./recipient-words.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { outside } from "../../../app/dashboard/elements/values.ts";

interface RunRoutes {
  /** This and the next throw `PageError` for what there is no page of. */
  wordsOf(request: Pick<PageRequest, "params">): RecipientWords;
  deps(deps: PageDeps, request: PageRequest): { db: Knex };
}

/** Retrying one run or all that is dead, and skipping one. */
export const runRoutes = ({ wordsOf, deps }: RunRoutes): readonly Route[] => [
  {
    method: "GET",
    path: "/handlers/:recipient/retry-dead",
    access: "status:read",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      const dead = await readDead(db, recipient, { most: mostCounted });
      const [row] = await readHandlers(db, recipient);
      return {
        kind: "page",
        title: `Retry all that is dead for ${words.name}`,
        body: renderRetryAll({
          recipient,
          words,
          dead,
          mostCounted,
          isPaused: row !== undefined && row.paused_by !== null,
          mayWrite: request.visitor.permissions.has("handler:write"),
        }),
        command: `${words.command} retry ${words.name} --all`,
      };
    },
  },
  actRoute({
    act: retrying,
    path: "/handlers/:recipient/retry-dead",
    deps,
    given: { seq: null, all: true },
    back: ({ recipient }) => `${recipientPath(recipient)}/retry-dead`,
    now: deadNow,
    done({ runs }, { recipient }, request) {
      const { item, items } = wordsOf(request);
      const notice = `${counted(runs, item, items)} will be tried again.`;
      return { to: recipientPath(recipient), notice };
    },
  }),
  actRoute({
    act: retrying,
    path: "/handlers/:recipient/runs/:seq/retry",
    deps,
    given: { all: false },
    back: ({ recipient }) => recipientPath(recipient),
    now: runNow,
    done: (_, { recipient, seq }) => ({
      to: recipientPath(recipient),
      notice: `Number ${seq} will be tried again.`,
    }),
  }),
  {
    method: "GET",
    path: "/handlers/:recipient/runs/:seq/skip",
    access: "status:read",
    async answer({ db }, request) {
      const words = wordsOf(request);
      const recipient = nameIn(request);
      const run = await findRun(db, recipient, seqIn(request));
      if (run === null) throw new PageError(404, "Nothing waits under this number.");
      return {
        kind: "page",
        title: `Skip number ${run.seq} for ${words.name}`,
        body: renderSkip({
          recipient,
          words,
          run,
          mayWrite: request.visitor.permissions.has("handler:write"),
        }),
        command: `${words.command} show ${words.name}`,
      };
    },
  },
  actRoute({
    act: skipping,
    path: "/handlers/:recipient/runs/:seq/skip",
    deps,
    back: ({ recipient, seq }) => `${recipientPath(recipient)}/runs/${seq}/skip`,
    now: runNow,
    done: (_, { recipient, seq }, request) => ({
      to: recipientPath(recipient),
      notice: `${wordsOf(request).name} never sees number ${seq}.`,
    }),
  }),
];

const nameIn = ({ params }: Pick<PageRequest, "params">): string => params["recipient"] ?? "";

const seqIn = ({ params }: Pick<PageRequest, "params">): number =>
  /^\d{1,15}$/.test(params["seq"] ?? "") ? Number(params["seq"]) : 0;

const runNow = (now: unknown): Html => {
  const run = now as OpenRunRow;
  return html`<p>Now: ${runState(run)} after ${counted(run.attempts, "attempt")}</p>`;
};

const deadNow = (now: unknown): Html => {
  const { count } = now as DeadRuns;
  return html`<p>Now ${counted(countText(count, mostCounted), "is", "are")} dead.</p>`;
};

interface RetryAllPage {
  recipient: string;
  words: RecipientWords;
  dead: DeadRuns;
  mostCounted: number;
  isPaused: boolean;
  mayWrite: boolean;
}

function renderRetryAll({ recipient, words, dead, mostCounted, isPaused, mayWrite }: RetryAllPage): Html {
  const path = recipientPath(recipient);
  if (dead.count === 0) {
    return html`<p class="notice">Nothing is dead any more.</p>
      <p><a href="${path}">Back to ${outside(words.name, 80)}</a></p>`;
  }
  return html`<form class="card narrow" method="post" action="${path}/retry-dead">
    ${decidedOn(versionOfDead(dead))}
    <p>
      ${counted(countText(dead.count, mostCounted), `dead ${words.item} is`, `dead ${words.items} are`)} tried again,
      with all attempts. What fails again at its last attempt is dead again.
    </p>
    ${isPaused && html`<p class="hint">It is paused: they are tried once it is resumed.</p>`}
    <div class="row">
      ${mayWrite && html`<button>Retry all</button>`}
      <a href="${path}">Leave them as they are</a>
    </div>
  </form>`;
}

interface SkipPage {
  recipient: string;
  words: RecipientWords;
  run: OpenRunRow;
  mayWrite: boolean;
}

function renderSkip({ recipient, words, run, mayWrite }: SkipPage): Html {
  const path = recipientPath(recipient);
  const { seq, kind, resource, id, error, holds_up: holdsUp } = run;
  return html`<form class="card narrow" method="post" action="${path}/runs/${seq}/skip">
    ${decidedOn(versionOfRun(run))}
    <p>
      ${outside(words.name, 80)} never sees this ${words.item}. This cannot be undone.
      ${holdsUp > 0 && html`The changes that wait behind it (${countText(holdsUp, mostHeldUp)}) continue.`}
    </p>
    <dl class="facts">
      <dt>Number</dt>
      <dd>${seq}</dd>
      <dt>Kind</dt>
      <dd>${outside(kind, 80)}</dd>
      <dt>Object</dt>
      <dd>${resource} <span class="id">${outside(id, 255)}</span></dd>
      <dt>State</dt>
      <dd>${runState(run)}</dd>
      ${
        error !== null &&
        html`<dt>Error</dt>
          <dd>${renderError(error, words)}</dd>`
      }
    </dl>
    <div class="row">
      ${mayWrite && html`<button class="danger">Skip it for good</button>`}
      <a href="${path}">Leave it as it is</a>
    </div>
  </form>`;
}
