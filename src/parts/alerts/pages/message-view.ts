import { versionOfFailed } from "../acts.ts";
import type { AlertDelivery, AlertDetails } from "../store.ts";
import { type Html, html } from "../../../platform/html.ts";
import { linesWithoutControls } from "../../../platform/readable-text.ts";
import { shortenedTo } from "../../../platform/redaction.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { type Tone, outside, state, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { type Sight, fact } from "./alert-words.ts";

export interface MessagesView {
  alert: AlertDetails;
  sight: Sight;
  mayWrite: boolean;
  now: Date;
  timeZone: string;
}

export function renderMessages(page: MessagesView): Html {
  const { alert, sight, mayWrite, timeZone } = page;
  const resend = (message: AlertDelivery): Html | null =>
    message.state === "failed" && mayWrite
      ? html`<form method="post" action="/alerts/${alert.id}/messages/${message.id}/resend">
          ${decidedOn(versionOfFailed([message]))}<button class="plain" aria-label="Send again: message ${message.id}">
            Send again
          </button>
        </form>`
      : null;
  return html`${table<AlertDelivery>(
    [
      { name: "Channel", cell: ({ channel }) => channel },
      {
        name: "What",
        cell: ({ action, stage }) => html`${actionWords[action] ?? action}, ${outside(stage, 80)}`,
      },
      {
        name: "State",
        cell: (message) => html`${deliveryState(message, page)} ${resend(message)}`,
      },
      { name: "Attempts", kind: "number", cell: ({ attempts }) => attempts },
      { name: "When", cell: (message) => timesOf(message, page) },
      {
        name: "Error",
        cell: ({ last_error: error }) => (error === null ? null : outside(error)),
      },
    ],
    alert.messages,
    {
      caption: "Its messages",
      empty: html`No message was written for it alone.`,
    },
  )}
  ${
    alert.messages.length > 0 &&
    (sight.people
      ? html`<details class="card">
          <summary>What the messages say</summary>
          <p class="hint">Tallyhook recorded that you read them.</p>
          ${alert.messages.map((message) => renderText(message, timeZone))}
        </details>`
      : html`<p class="hint">Messages may name people: reading them requires the permission person:read.</p>`)
  }`;
}

const actionWords: Readonly<Record<string, string>> = {
  trigger: "alert",
  acknowledge: "acknowledged",
  resolve: "resolved",
};

const deliveryTones: Readonly<Record<string, Tone>> = {
  pending: "calm",
  sent: "good",
  dropped: "calm",
  failed: "bad",
};

const deliveryWords: Readonly<Record<string, string>> = {
  pending: "waits",
  sent: "sent",
  dropped: "no longer needed",
  failed: "given up",
};

const isSilenced = ({ state: is, silence_id: id, due_at: due }: AlertDelivery, now: Date): boolean =>
  is === "pending" && id !== null && due > now;

function deliveryState(message: AlertDelivery, { now }: MessagesView): Html {
  const { state: is } = message;
  if (isSilenced(message, now)) return state("silenced", "calm");
  return state(deliveryWords[is] ?? is, deliveryTones[is] ?? "calm");
}

function timesOf(message: AlertDelivery, { timeZone }: MessagesView): Html | null {
  const { state: is, sent_at: sent, next_attempt_at: next, due_at: due } = message;
  if (sent !== null) return html`sent ${time(sent, timeZone)}`;
  if (is !== "pending") return null;
  return next === null ? html`due ${time(due, timeZone)}` : html`next attempt ${time(next, timeZone)}`;
}

function renderText({ channel, message }: AlertDelivery, timeZone: string): Html {
  const { title, facts, advice, at, items = [] } = message;
  return html`<section>
    <h3>${outside(title, 500)}</h3>
    <p class="hint">To ${channel}, about ${time(new Date(at), timeZone)}</p>
    <dl class="facts">${facts.map(({ label, value }) => fact(shortenedTo(label, 100), outside(value, 1_000)))}</dl>
    ${advice !== "" && html`<p><bdi class="outside">${linesWithoutControls(shortenedTo(advice, 4_000))}</bdi></p>`}
    ${
      items.length > 0 &&
      html`<ul>
        ${items.slice(0, 50).map((item) => html`<li>${outside(item.title)}</li>`)}
        ${items.length > 50 && html`<li>and ${items.length - 50} more</li>`}
      </ul>`
    }
  </section>`;
}
