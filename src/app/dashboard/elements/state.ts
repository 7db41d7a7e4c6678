import { type Html, html } from "../../../platform/html.ts";

export type Tone = "good" | "warn" | "bad" | "calm";

/** A state in words. The colour only repeats it. */
export const state = (text: string, tone: Tone): Html => html`<span class="state ${tone}">${text}</span>`;

const severityTones: Readonly<Record<string, Tone>> = {
  critical: "bad",
  high: "bad",
  error: "bad",
  warning: "warn",
  info: "calm",
};

/** How severe an alert or a finding is. */
export const severityState = (severity: string): Html => state(severity, severityTones[severity] ?? "warn");
