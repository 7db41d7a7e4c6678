import type { HistoryState } from "../../../../core/mirror/compare/state-neighbours.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { fieldChanges } from "../../../../app/dashboard/elements/field-changes.ts";
import { type Tone, state, time } from "../../../../app/dashboard/elements/values.ts";
import { objectLink } from "./consequences.ts";
import type { StateEffect } from "./event-effects.ts";

interface Shown {
  showsPersons: boolean;
  timeZone: string;
}

export function renderEffects(effects: readonly StateEffect[], shown: Shown): Html {
  return html`<section class="stack">
    <h2>What it changed</h2>
    ${
      effects.length === 0
        ? html`<p class="hint">It carries no state of an object that the mirror keeps.</p>`
        : effects.map((effect) => renderEffect(effect, shown))
    }
  </section>`;
}

const verdicts: Readonly<Record<StateEffect["verdict"], { text: string; tone: Tone }>> = {
  changed: { text: "changed the mirror", tone: "good" },
  late: { text: "came late", tone: "calm" },
  known: { text: "was known", tone: "calm" },
  absent: { text: "not in the history", tone: "warn" },
};

function renderEffect(effect: StateEffect, { showsPersons, timeZone }: Shown): Html {
  const { text, tone } = verdicts[effect.verdict];
  const isPart = effect.group !== effect.resource;
  return html`<div class="card">
    <div class="row">
      <h3>${objectLink(effect.resource, effect.id)}</h3>
      ${state(text, tone)} ${isPart && html`<span class="hint">the part ${effect.group}</span>`}
    </div>
    <p>State of ${time(effect.updatedAt, timeZone)}. ${explain(effect, timeZone)}</p>
    ${
      effect.verdict !== "known" &&
      fieldChanges(effect.changes, {
        caption: effect.isFirst ? "Fields that it brought" : "Against the state before it",
        mayRead: showsPersons,
      })
    }
  </div>`;
}

function explain({ verdict, against, replacedBy }: StateEffect, timeZone: string): Html {
  switch (verdict) {
    case "changed":
      return replacedBy === null
        ? html`It won, and stands until now.`
        : html`It won. Since then ${stateLink(replacedBy, timeZone)} stands in its place.`;
    case "late":
      return html`${against === null ? "A later state" : stateLink(against, timeZone)} stood already, so the row stayed
      as it was. The state is kept in the history.`;
    case "known":
      return html`The same was shown before by ${against === null ? "another source" : stateLink(against, timeZone)}.`;
    case "absent":
      return against === null
        ? html`No worker has applied it, it is dated in the future, a person overruled it, or its customer was erased.`
        : html`${stateLink(against, timeZone)} stood already, and this one was not kept.`;
  }
}

const stateLink = ({ cause, updatedAt }: HistoryState, timeZone: string): Html =>
  html`${causeText(cause)} with the state of ${time(updatedAt, timeZone)}`;

/** How a state was learned, with the link to it where there is one. */
function causeText(cause: string): Html {
  const seq = /^event:(\d{1,15})$/.exec(cause)?.[1];
  if (seq !== undefined) return html`<a href="/events/${seq}">event ${seq}</a>`;
  const run = /^reconcile:(\d{1,15})$/.exec(cause)?.[1];
  if (run !== undefined) return html`reconciliation run ${run}`;
  const texts: Readonly<Record<string, string>> = {
    fetch: "a read from the service",
    import: "the initial import",
    heal: "a heal",
  };
  return html`${texts[cause] ?? cause.slice(0, 60)}`;
}
