import { versionOfDead, versionOfRun } from "../dispatch/acts.ts";
import { type DeadRuns, type OpenRunRow, mostHeldUp } from "../dispatch/open-runs.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { outside } from "../../../app/dashboard/elements/values.ts";
import { renderError, runState } from "./handler-view.ts";
import { type RecipientWords, countText, recipientPath } from "./recipient-words.ts";

export interface RetryAllPage {
  recipient: string;
  words: RecipientWords;
  dead: DeadRuns;
  mostCounted: number;
  isPaused: boolean;
  mayWrite: boolean;
}

export function renderRetryAll({ recipient, words, dead, mostCounted, isPaused, mayWrite }: RetryAllPage): Html {
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

export interface SkipPage {
  recipient: string;
  words: RecipientWords;
  run: OpenRunRow;
  mayWrite: boolean;
}

export function renderSkip({ recipient, words, run, mayWrite }: SkipPage): Html {
  const path = recipientPath(recipient);
  const { seq, kind, resource, id, error, holds_up: holdsUp } = run;
  return html`<form class="card narrow" method="post" action="${path}/runs/${seq}/skip">
    ${decidedOn(versionOfRun(run))}
    <p>
      ${outside(words.name, 80)} never sees this ${words.item}. This cannot be undone.
      ${holdsUp > 0 && html`What waits behind it, ${countText(holdsUp, mostHeldUp)}, goes on.`}
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
