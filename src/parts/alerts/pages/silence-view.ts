import { tallyhook } from "../../../platform/command-line.ts";
import { silenceSubject, versionOfSilences } from "../acts.ts";
import { type AlertSeverity, alertSeverities } from "../message.ts";
import { type SilenceRow } from "../silences.ts";
import { shortLine } from "../../../platform/free-text.ts";
import { type Html, html } from "../../../platform/html.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { outside, state, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { hiddenText } from "../../../app/dashboard/elements/personal.ts";
import { type Sight, alertTabs } from "./alert-words.ts";

export interface SilencesPage {
  /** The newest first. */
  silences: readonly SilenceRow[];
  rules: readonly string[];
  mayWrite: boolean;
  sight: Sight;
  timeZone: string;
}

export function renderSilencesPage(page: SilencesPage): Html {
  const { silences, rules, mayWrite, sight, timeZone } = page;
  return html`${alertTabs("/alerts/silences")}
    <p class="lead">
      While a silence is in force, messages of an alert or of a rule wait. The alerts stay open and on their pages; what
      gets more severe is sent; what still holds at the end is sent then.
    </p>
    ${renderSilences({
      silences,
      caption: "The newest first",
      empty: html`Nothing was ever silenced. An alert's page has a form for it, and so has the command line:
        <code>${tallyhook("alerts silence ID")}</code>`,
      mayEnd: mayWrite,
      sight,
      back: null,
      timeZone,
    })}
    ${
      mayWrite &&
      html`<form class="card narrow" method="post" action="/alerts/silences">
        <h2>Silence a rule</h2>
        ${decidedOn(versionOfSilences(silences))}
        <label for="rule">Rule</label>
        <select id="rule" name="rule" required>
          <option value="">choose one</option>
          ${rules.map((rule) => html`<option value="${rule}">${rule}</option>`)}
        </select>
        ${silenceForm({ upTo: "error" })}
        <button>Silence</button>
      </form>`
    }`;
}

const durations = [
  [1, "an hour"],
  [4, "4 hours"],
  [8, "8 hours"],
  [24, "a day"],
  [72, "3 days"],
  [168, "a week"],
  [720, "30 days"],
] as const;

/** The fields that every silence has. */
export const silenceForm = ({ upTo }: { upTo: AlertSeverity }): Html =>
  html`<label for="hours">For</label>
    <select id="hours" name="hours">
      ${durations.map(([hours, words]) => html`<option value="${hours}" ${hours === 8 && selected}>${words}</option>`)}
    </select>
    <label for="up-to">Up to severity</label>
    <select id="up-to" name="up-to">
      ${alertSeverities.map((each) => html`<option value="${each}" ${each === upTo && selected}>${each}</option>`)}
    </select>
    <label for="reason">Why <span class="hint">name no customer</span></label>
    <input id="reason" name="reason" maxlength="${shortLine.longest}" />`;

const selected: Html = html`selected`;

interface Listed {
  silences: readonly SilenceRow[];
  caption: string;
  empty: Html;
  mayEnd: boolean;
  sight: Sight;
  /** The alert whose page this is; null: the page of all silences. */
  back: string | null;
  timeZone: string;
}

export const renderSilences = (listed: Listed): Html => {
  const { silences, caption, empty, sight, timeZone } = listed;
  return table<SilenceRow>(
    [
      { name: "Number", kind: "number", cell: ({ id }) => id },
      {
        name: "Messages of",
        cell: ({ rule, key }) =>
          rule !== null
            ? `the rule ${rule}`
            : sight.texts
              ? html`<span class="id">${outside(key ?? "", 120)}</span>`
              : "one alert",
      },
      { name: "Up to", cell: ({ up_to_severity: upTo }) => upTo },
      { name: "Began", cell: ({ began_at: at }) => time(at, timeZone) },
      { name: "By", cell: ({ began_by: by }) => outside(by) },
      { name: "Ends", cell: (silence) => renderEnd(silence, listed) },
      {
        name: "Why",
        cell: ({ reason }) =>
          reason === null ? null : sight.people ? outside(reason) : html`<span class="hint">${hiddenText}</span>`,
      },
    ],
    silences,
    { caption, empty },
  );
};

function renderEnd(silence: SilenceRow, { mayEnd, back, timeZone }: Listed): Html {
  const { id, ended_at: endedAt, ended_by: endedBy, ends_at: endsAt } = silence;
  if (endedAt !== null) return html`ended ${time(endedAt, timeZone)} by ${outside(endedBy ?? "")}`;
  if (!silence.is_in_force) return html`ended ${time(endsAt, timeZone)}`;
  return html`${state("in force", "warn")} until ${time(endsAt, timeZone)}
  ${
    mayEnd &&
    html`<form method="post" action="/alerts/silences/${id}/end">
      ${decidedOn(silenceSubject.version(silence))}
      ${back !== null && html`<input type="hidden" name="alert" value="${back}" />`}
      <button class="plain" aria-label="End it now: silence ${id}">End it now</button>
    </form>`
  }`;
}
