import { tallyhook } from "../../../../platform/command-line.ts";
import type { Route, Visitor } from "../../route.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted, withoutControls } from "../../../../platform/readable-text.ts";
import { type Tone, state, time } from "../../elements/values.ts";
import { table } from "../../elements/table.ts";
import { tabs } from "./sections.ts";

/** After this the browser gets an answer that the checks are still running. */
const longestWaitMs = 20_000;

export function setupRoutes({
  settings,
  examine,
}: {
  settings: readonly ShownSetting[];
  examine(): Promise<readonly Finding[]>;
}): readonly Route[] {
  let last: Examination | null = null;
  let running: Promise<void> | null = null;

  /** Requests during the checks share one run. */
  const examineOnce = (now: () => Date): Promise<void> => {
    running ??= examine()
      .then((findings) => void (last = { at: now(), findings }))
      .finally(() => (running = null));
    return running;
  };

  return [
    {
      method: "GET",
      path: "/admin/settings",
      access: "setting:read",
      answer: async (_, { visitor }) => ({
        kind: "page",
        title: "Settings",
        body: renderSettings({ settings, visitor }),
      }),
    },
    {
      method: "GET",
      path: "/admin/doctor",
      access: "setting:read",
      answer: async ({ timeZone }, { visitor }) => ({
        kind: "page",
        title: "Doctor",
        body: renderDoctor({ last, isRunning: running !== null, visitor, timeZone }),
        command: tallyhook("doctor"),
      }),
    },
    {
      method: "POST",
      path: "/admin/doctor",
      access: "setting:read",
      async answer({ clock }) {
        await Promise.race([examineOnce(() => clock.now()), timeLimit(longestWaitMs)]);
        return { kind: "redirect", to: "/admin/doctor" };
      },
    },
  ];
}

const timeLimit = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());

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
interface Examination {
  at: Date;
  findings: readonly Finding[];
}

interface SettingsPage {
  settings: readonly ShownSetting[];
  visitor: Visitor;
}

function renderSettings({ settings, visitor }: SettingsPage): Html {
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
          name: "Purpose",
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

function renderDoctor({ last, isRunning, visitor, timeZone }: DoctorPage): Html {
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
      { caption: "Checks", empty: html`Nothing was checked.` },
    )}`;
}
