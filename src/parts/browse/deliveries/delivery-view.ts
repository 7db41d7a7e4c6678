import type { DayOfLag, Lag, Percentiles } from "../../../core/inbox/lag.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import type { SecretOverview, SecretState } from "../../../core/receiver/secrets-overview.ts";
import { type Tone, outside, state, time } from "../../../app/dashboard/elements/values.ts";
import { type Read, ageHint } from "../../../app/dashboard/elements/slow-reads.ts";
import { type TableColumn, table } from "../../../app/dashboard/elements/table.ts";
import type { Figure } from "../../../app/figures/figure.ts";
import { patterns, renderFigures } from "../../../app/figures/svg-figures.ts";
import { type Answers, refusalsOf, timesOf } from "./answers.ts";
import type { StatementFound } from "./statement.ts";

export interface DeliveriesPage {
  day: Answers;
  week: Answers;
  /** The requests by hour. */
  figures: readonly Figure[];
  lag: Read<Lag>;
  /** Null: this deployment has no reports. */
  statement: StatementFound | null;
  /** Null: the visitor may not see them. */
  secrets: readonly SecretOverview[] | null;
  quietHours: number;
  timeZone: string;
}

export function renderDeliveries(page: DeliveriesPage): Html {
  return html`${renderAnswers(page)} ${renderLag(page)} ${renderStatement(page)} ${renderSecrets(page)}`;
}

function renderAnswers({ day, week, figures }: DeliveriesPage): Html {
  const counts = [
    { name: "New", key: "accepted" },
    { name: "Repeats", key: "duplicate" },
    { name: "Refused", key: "refused" },
  ] as const;
  return html`<section class="stack">
    <h2>Requests received</h2>
    <ul class="cards stats plain-list">
      ${counts.map(
        ({ name, key }) =>
          html`<li class="card">
            <h3>${name}</h3>
            <p class="stat">${timesOf(day, key)}</p>
            <p class="hint">in 24 hours; ${timesOf(week, key)} in 7 days</p>
          </li>`,
      )}
    </ul>
    ${figures.length === 0 ? html`<p class="hint">No request came in 7 days.</p>` : html`${patterns}${renderFigures(figures, "requests")}`}
    ${table(
      [
        { name: "Refused for", cell: ({ reason }) => html`<code>${reason}</code>` },
        { name: "Meaning", cell: ({ meaning }) => meaning },
        { name: "24 hours", kind: "number", cell: ({ inADay }) => inADay },
        { name: "7 days", kind: "number", cell: ({ inAWeek }) => inAWeek },
      ],
      refusalsOf(day, week),
      { caption: "Refusals by reason", empty: html`Nothing was refused in 7 days.` },
    )}
    <p class="hint">
      The receivers count these, write the counts every few seconds and keep them for 7 days. Refused requests are not
      stored: they are not authentic, or their sender was asked to send them again. Connections that were closed past a
      cap are only in the receivers' logs.
    </p>
  </section>`;
}

function renderLag({ lag, timeZone }: DeliveriesPage): Html {
  const { days, everyNth } = lag.value;
  const lags = (said: string, of: (day: DayOfLag) => Percentiles) =>
    (["p50", "p95", "p99"] as const).map((part): TableColumn<DayOfLag> => ({
      name: `${said}, ${partNames[part]}`,
      kind: "number",
      cell: (day) => lagText(of(day)[part]),
    }));
  return html`<section class="stack">
    <h2>How late</h2>
    ${table(
      [
        { name: `Day (${timeZone})`, kind: "moment", cell: ({ day }) => day },
        { name: "Events", kind: "number", cell: ({ events }) => events },
        ...lags("Received", ({ untilReceived }) => untilReceived),
        ...lags("Applied", ({ untilApplied }) => untilApplied),
      ],
      days,
      {
        caption: "Events of the last 7 days by their day of receipt",
        empty: html`No event was applied in 7 days. Try it on the sandbox:
          <code>${tallyhook("trigger order.paid")}</code>`,
      },
    )}
    <p class="hint">
      ${everyNth === 1 ? "All events" : `Every ${everyNth}th number`} of these days that a worker has completed.
      Received: the time since the event's own time, which is by the service's clock and not ours. Applied: the time
      since receipt; for an event that was replayed, until it was applied again.
    </p>
    ${ageHint(lag.ageMs)}
  </section>`;
}

/** So many of the events were as fast or faster. */
const partNames = { p50: "half", p95: "95 %", p99: "99 %" } as const;

/** In milliseconds below a second. */
function lagText(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < 0) return `−${lagText(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : durationText(ms);
}

function renderStatement({ statement, timeZone }: DeliveriesPage): Html | null {
  if (statement === null) return null;
  const command = html`<code>${tallyhook("report delivery-statement")}</code>`;
  if (statement === "computing") {
    return statementFrame(
      html`<p>It is being computed. Load the page again in a moment, or see the report: ${command}</p>`,
    );
  }
  if (statement === "too slow") {
    return statementFrame(
      html`<p>
        Comparing all changes of 7 days with their events takes longer than a page may. The report has it: ${command}
      </p>`,
    );
  }
  const { from, until, announced, received, inTime, missed } = statement;
  return statementFrame(
    html`<p class="stat">${received} of ${announced}</p>
      <p>
        changes that the service had to announce were received, ${inTime} of them within ten minutes;
        ${missed === 0 ? "none was missed" : counted(missed, "was missed", "were missed")}. Changes from
        ${time(from, timeZone)} to ${time(until, timeZone)}.
      </p>
      <p class="hint">By the last state of each object, as ${command} has it; computed again after ten minutes.</p>`,
  );
}

const statementFrame = (body: Html): Html =>
  html`<section class="stack">
    <h2>Events due from the service</h2>
    <div class="card">${body}</div>
  </section>`;

const secretTones: Readonly<Record<SecretState, Tone>> = {
  live: "good",
  pending: "calm",
  ending: "warn",
  ended: "calm",
  unusable: "bad",
};

function renderSecrets({ secrets, quietHours, timeZone }: DeliveriesPage): Html | null {
  if (secrets === null) return null;
  const when = (at: Date | null, none: string) => (at === null ? none : time(at, timeZone));
  return html`<section class="stack">
    <h2>Signing secrets</h2>
    ${table(
      [
        { name: "Secret", kind: "id", cell: ({ id }) => html`<span class="id">${id}</span>` },
        { name: "State", cell: (secret) => state(secret.state, secretTones[secret.state]) },
        { name: "From", cell: ({ notBefore }) => when(notBefore, "–") },
        { name: "Until", cell: ({ notAfter }) => when(notAfter, "–") },
        { name: "Last used", cell: ({ lastUsedAt }) => when(lastUsedAt, "not lately") },
        {
          name: "Safe to retire",
          cell: ({ safeToRetire }) => (safeToRetire === null ? "no" : `yes: ${safeToRetire}`),
        },
        { name: "Note", cell: ({ note }) => (note === null ? "" : outside(note, 200)) },
      ],
      secrets,
      {
        caption: "Every secret, without its value",
        empty: html`There is no secret, so every delivery is refused. Store one:
          <code>${tallyhook("secrets add")}</code>`,
      },
    )}
    <p class="hint">
      A secret is safe to retire when no delivery was signed with it for ${quietHours} hours while another one was used:
      <code>${tallyhook("secrets retire ID")}</code>. Values are never shown.
    </p>
  </section>`;
}
