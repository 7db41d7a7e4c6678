import { tallyhook } from "../../../platform/command-line.ts";
import { versionOfEndpoint } from "../acts.ts";
import type { WebhookEndpoint } from "../../../core/contract/resources/webhook-endpoints.ts";
import type { EndpointCall } from "../endpoint-calls.ts";
import type { EndpointProblem } from "../../../app/answers.ts";
import { type Html, html } from "../../../platform/html.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { copyableId, outside, state, time } from "../../../app/dashboard/elements/values.ts";

/** An endpoint of this deployment as the service shows it. */
export interface SeenEndpoint {
  endpoint: WebhookEndpoint;
  /** The secret that was stored for it; null: by other means than from here. */
  secretId: string | null;
}

export interface Seen {
  endpoints: readonly SeenEndpoint[];
  problems: readonly EndpointProblem[];
}

export interface EndpointPage {
  url: string | null;
  openCall: EndpointCall | null;
  /** A text where the service does not answer. */
  seen: Seen | string;
  mayWrite: boolean;
  timeZone: string;
}

export function renderEndpoint(page: EndpointPage): Html {
  const { url, openCall, seen } = page;
  return html`<p class="lead">
      Where the service sends its events:
      ${url === null ? html`PUBLIC_URL is not set, so only what was registered from here is known.` : outside(url, 300)}
    </p>
    ${
      openCall !== null &&
      html`<p class="problem">
        A command to ${openCall.kind} was begun at ${time(openCall.createdAt, page.timeZone)} and is not finished.
        ${openCall.kind === "rotate" ? "Rotate again: it continues where it stopped." : html`Run <code>${tallyhook("endpoint register")}</code> again: it continues where it stopped.`}
      </p>`
    }
    ${typeof seen === "string" ? renderAway(seen) : renderSeen(seen, page)}`;
}

const renderAway = (said: string): Html =>
  html`<div class="problem" role="alert">
    <p>The service does not answer, so its endpoint cannot be shown: <bdi>${said}</bdi></p>
    <p>Events that arrive are still stored. <a href="/endpoint">Try again</a></p>
  </div>`;

function renderSeen({ endpoints, problems }: Seen, page: EndpointPage): Html {
  return html`${problems.map(
    ({ severity, says, remedy }) =>
      html`<div class="problem">
        <p>${state(severity, severity === "warning" ? "warn" : "bad")} ${outside(says, 500)}</p>
        <p>${remedy}</p>
      </div>`,
  )}
  ${
    endpoints.length === 0 && problems.length === 0
      ? html`<p class="empty">
          No endpoint is known here. Set PUBLIC_URL, and run
          <code>${tallyhook("endpoint register")}</code>.
        </p>`
      : endpoints.map((each) => renderOne(each, page))
  }`;
}

function renderOne(seen: SeenEndpoint, { mayWrite, openCall, timeZone }: EndpointPage): Html {
  const { endpoint, secretId } = seen;
  const path = `/endpoint/${encodeURIComponent(endpoint.id)}`;
  return html`<section class="card">
    <div class="row">
      <h2>${copyableId(endpoint.id)}</h2>
      ${state(endpoint.status.slice(0, 40), endpoint.status === "enabled" ? "good" : "bad")}
    </div>
    <dl class="facts">
      <dt>Address</dt>
      <dd>${outside(endpoint.url, 300)}</dd>
      <dt>Events</dt>
      <dd>${outside(endpoint.enabled_events.join(", "), 500)}</dd>
      <dt>Version</dt>
      <dd>${outside(endpoint.api_version ?? "the newest", 60)}</dd>
      <dt>Secret here</dt>
      <dd class="id">${secretId ?? "not stored from here"}</dd>
      <dt>Rotation</dt>
      <dd>${rotationText(endpoint, timeZone)}</dd>
    </dl>
    ${
      mayWrite &&
      html`<div class="row">
        <form method="post" action="${path}/test">
          ${decidedOn(versionOfEndpoint(seen.endpoint, seen.secretId, openCall))}
          <button class="second">Send a test event</button>
        </form>
        <a class="button second" href="${path}/rotate/confirm">Rotate its secret…</a>
      </div>`
    }
  </section>`;
}

function rotationText(
  { has_pending_rotation: isPending, rotation_expires_at: until }: WebhookEndpoint,
  timeZone: string,
): Html {
  if (isPending !== true) return html`none pending`;
  const at = new Date(until ?? Number.NaN);
  return Number.isNaN(at.getTime())
    ? html`pending: the former secret signs, too`
    : html`pending: the former secret signs, too, until ${time(at, timeZone)}`;
}

export interface RotationPage {
  seen: SeenEndpoint;
  openCall: EndpointCall | null;
  timeZone: string;
}

/** The effect of a rotation, with its button. */
export function renderRotation({ seen, openCall, timeZone }: RotationPage): Html {
  const { endpoint, secretId } = seen;
  return html`<section class="card">
    <p>
      The service makes a new secret for <bdi class="id">${endpoint.id}</bdi> and shows it once. It is stored here,
      encrypted, and running receivers use it within 5 s. Until the end of the grace period the former one signs as
      well, and ends then. This cannot be undone.
    </p>
    <dl class="facts">
      <dt>Former secret</dt>
      <dd class="id">${secretId ?? "not stored from here: retire it by hand when it ends"}</dd>
      <dt>Rotation</dt>
      <dd>${rotationText(endpoint, timeZone)}</dd>
    </dl>
    <form method="post" action="/endpoint/${encodeURIComponent(endpoint.id)}/rotate" class="stack">
      ${decidedOn(versionOfEndpoint(seen.endpoint, seen.secretId, openCall))}
      <div>
        <label for="grace-hours">Grace period in hours <span class="hint">(empty: as the service has it)</span></label>
        <input id="grace-hours" name="grace-hours" inputmode="numeric" pattern="[0-9]*" />
      </div>
      <div class="row">
        <button class="danger">Rotate the secret</button>
        <a href="/endpoint">Leave it as it is</a>
      </div>
    </form>
  </section>`;
}
