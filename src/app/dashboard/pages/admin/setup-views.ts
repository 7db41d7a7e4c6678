import { type Html, html } from "../../../../platform/html.ts";
import { counted, withoutControls } from "../../../../platform/readable-text.ts";
import { type Tone, state, time } from "../../elements/values.ts";
import { table } from "../../elements/table.ts";
import type { Visitor } from "../../route.ts";
import { tabs } from "./sections.ts";

/** A setting, without a secret. */
export interface ShownSetting {
  name: string;
  isSecret: boolean;
  /** Null: it is not set, and there is no default. */
  value: string | null;
  source: string;
  fallback: string | null;
  about: string;
}

/** A check's result. */
export interface Finding {
  check: string;
  status: "ok" | "advice" | "warning" | "failed" | "skipped";
  detail: string;
  remedy: string | null;
}

/** The doctor's last run in this process. */
export interface Examination {
  at: Date;
  findings: readonly Finding[];
}

interface SettingsPage {
  settings: readonly ShownSetting[];
  visitor: Visitor;
}

export function renderSettings({ settings, visitor }: SettingsPage): Html {
  return html`${tabs(visitor, "/admin/settings")}
    <p class="lead">
      The settings of this process since it started. Receivers and workers read their own environment: the same command,
      run there, shows theirs. Secrets are never shown.
    </p>
    ${table<ShownSetting>(
      [
        { name: "Setting", kind: "id", cell: ({ name }) => name },
        { name: "Value", cell: valueOf },
        { name: "Comes from", cell: ({ source }) => sources[source] ?? source },
        { name: "Default", cell: ({ fallback }) => (fallback === null ? "–" : code(fallback)) },
        {
          name: "What for",
          kind: "long",
          cell: ({ about }) => html`<span class="hint">${about}</span>`,
        },
      ],
      settings,
      { caption: "By name", empty: html`There are no settings.` },
    )}`;
}

const sources: Readonly<Record<string, string>> = {
  environment: "the environment",
  ".env": "the file .env",
  file: "a file of its own",
  default: "the default",
};

function valueOf({ isSecret, value }: ShownSetting): Html {
  if (value === null) return html`<span class="hint">not set</span>`;
  return isSecret ? state("set", "calm") : code(value);
}

const code = (text: string): Html => html`<code>${withoutControls(text)}</code>`;

interface DoctorPage {
  last: Examination | null;
  isRunning: boolean;
  visitor: Visitor;
  timeZone: string;
}

const tones: Readonly<Record<Finding["status"], Tone>> = {
  ok: "good",
  advice: "calm",
  warning: "warn",
  failed: "bad",
  skipped: "calm",
};

export function renderDoctor({ last, isRunning, visitor, timeZone }: DoctorPage): Html {
  return html`${tabs(visitor, "/admin/doctor")}
    <form class="row" method="post" action="/admin/doctor">
      <button>Check everything now</button>
      <span class="hint">Takes some seconds; up to half a minute where something does not answer.</span>
    </form>
    ${isRunning && html`<p class="notice">The checks are still running. <a href="/admin/doctor">Load the page again</a> in a moment.</p>`}
    ${last !== null && renderFindings(last, timeZone)}`;
}

function renderFindings({ at, findings }: Examination, timeZone: string): Html {
  const bad = findings.filter(({ status }) => status === "failed" || status === "warning").length;
  return html`<p class="${bad === 0 ? "notice" : "problem"}">
      ${bad === 0 ? "Every check that ran has passed" : `${counted(bad, "check needs", "checks need")} attention`}, at
      ${time(at, timeZone)}.
    </p>
    ${table<Finding>(
      [
        { name: "State", cell: ({ status }) => state(status, tones[status]) },
        { name: "Check", cell: ({ check }) => check },
        { name: "Found", cell: ({ detail }) => withoutControls(detail) },
        { name: "What to do", cell: ({ remedy }) => withoutControls(remedy ?? "") },
      ],
      findings,
      { caption: "What was checked", empty: html`Nothing was checked.` },
    )}`;
}
