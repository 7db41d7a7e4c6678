import { type Html, html } from "../../platform/html.ts";

export type Tone = "good" | "warn" | "bad" | "calm";

/** A state in words. The colour only repeats it. Pure. */
export const state = (text: string, tone: Tone): Html =>
  html`<span class="state ${tone}">${text}</span>`;
