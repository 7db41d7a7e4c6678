import type { FieldBlame, Rival } from "../../../core/mirror/blame/blame.ts";
import type { Loss } from "../../../core/mirror/blame/losses.ts";
import type { KnownState } from "../../../core/mirror/blame/object-history.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { type ValueStyle, fieldName, fieldValue } from "./field-value.ts";
import { type EventsBySeq, moment, sourceOf } from "./source.ts";
import { groupWords } from "./words.ts";

export interface BlameSection {
  fields: readonly FieldBlame[];
  events: EventsBySeq;
  style: ValueStyle;
  /** The object's name in small letters. */
  noun: string;
}

/** The origin of each field's value: the state that won, since when, and the states that lost. */
export function renderBlame({ fields, events, style, noun }: BlameSection): Html {
  const { timeZone } = style;
  return html`<section id="blame" class="blame">
    <h2>Why each field has its value</h2>
    <p class="lead">
      The mirror keeps every state that it ever received. For each field the latest state wins, in whatever order the
      states arrived.
    </p>
    ${table<FieldBlame>(
      [
        { name: "Field", cell: ({ field }) => fieldName(field) },
        { name: "Value", cell: ({ field, value }) => fieldValue(field, value, style) },
        {
          name: "Since",
          cell: ({ since }) => renderOrigin(since, events, timeZone),
        },
        { name: "Last confirmed by", cell: (blame) => renderWinner(blame, events, timeZone) },
        {
          name: "Lost to it",
          cell: (blame) => renderRivals(blame, { events, style, noun }),
        },
      ],
      fields,
      {
        caption: "Fields",
        empty: html`No state of it was ever accepted, so no field has a value.`,
      },
    )}
  </section>`;
}

function renderWinner(
  { winner: { state, version }, group, since }: FieldBlame,
  events: EventsBySeq,
  timeZone: string,
): Html {
  const read = readIn(version);
  const of = groupWords(group);
  return html`${state === since ? html`<span class="hint">the same</span>` : renderOrigin(state, events, timeZone)}
  ${read !== null && html`<br /><span class="hint">read at the service ${moment(read, timeZone)}</span>`}
  ${of !== null && html`<br /><span class="hint">${of}</span>`}`;
}

const renderOrigin = (state: KnownState, events: EventsBySeq, timeZone: string): Html =>
  html`${moment(state.updatedAt, timeZone)}<br /><span class="hint">${sourceOf(state, events)}</span>`;

/** The `Date` of the read that showed a version last; null for an event's. */
function readIn(version: string): string | null {
  return version.split("|").at(-3)?.replace(/^-$/, "") || null;
}

interface RivalStyle {
  events: EventsBySeq;
  style: ValueStyle;
  noun: string;
}

const mostRivals = 10;

function renderRivals({ field, rivals }: FieldBlame, { events, style, noun }: RivalStyle): Html {
  if (rivals.length === 0) return html`<span class="hint">nothing</span>`;
  const shown = rivals.slice(0, mostRivals);
  return html`<details>
    <summary>${counted(rivals.length, "state")} lost</summary>
    <ul>
      ${shown.map((rival) => html`<li>${renderRival(field, rival, { events, style, noun })}</li>`)}
      ${rivals.length > shown.length && html`<li>${rivals.length - shown.length} more, in the timeline below</li>`}
    </ul>
  </details>`;
}

function renderRival(field: string, { state, value, loss }: Rival, of: RivalStyle): Html {
  const { events, style, noun } = of;
  return html`${fieldValue(field, value, style)} from ${sourceOf(state, events)}, of
  ${moment(state.updatedAt, style.timeZone)}: ${lossSentence(loss, { noun, group: state.group }, style.timeZone)}`;
}

/** The reason why a state lost, worded to follow a colon. */
export function lossSentence(
  { why, to, isLate }: Loss,
  { noun, group }: { noun: string; group: string },
  timeZone: string,
): Html {
  const known = to === null ? null : moment(to.updatedAt, timeZone);
  if (why === "older") {
    return isLate
      ? html`it came late. A state of ${known} was known already.`
      : html`the other is of ${known}, by the order that carries it.`;
  }
  if (why === "unread") return html`it has the same time, and a later read of the service showed the other.`;
  if (why === "rank") return html`it has the same time, and the other's status comes later for ${article(noun)}.`;
  if (why === "hash")
    return html`it has the same time and a status of the same rank. The choice between the two is arbitrary but the same
    everywhere, until a read of the service decides.`;
  if (why === "future") return html`it was dated more than an hour after it arrived, so it was not accepted.`;
  if (why === "overruled") return html`the object was healed with the state that the service showed.`;
  if (why === "group") {
    return html`this is the ${noun} ${groupWords(group) ?? "as it shows itself"}; for this field the other is later, or
    counts first.`;
  }
  return html`by its time it would count. The row was not written by Tallyhook: heal it.`;
}

const article = (noun: string): string => (/^[aeo]/.test(noun) ? `an ${noun}` : `a ${noun}`);
