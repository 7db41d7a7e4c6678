import type { FindingClass, FindingRow, FindingState } from "../findings/findings.ts";
import type { RunRow } from "../runs/list-runs.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import type { Tone } from "../../../app/dashboard/elements/values.ts";

/** `Orders`: as a list is called on pages. */
export function listName(resource: string): string {
  const name = withoutControls(resource);
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}s`;
}

/** The meaning of a class of findings, in a sentence. A broken invariant is known by its own name and rule. */
export const classMeanings: Readonly<Record<FindingClass, string>> = {
  missing_here: "The service has it, the mirror does not.",
  behind: "The mirror has an earlier state than the service.",
  mismatch: "Mirror and service show the same version with other values.",
  missing_there: "The mirror has it, the service no longer knows it.",
  unreadable: "The service shows it in a form that cannot be stored.",
  edited_row: "The mirror's row was changed by hand.",
  identity: "A rule that holds for every correct mirror is broken.",
  endpoint: "The webhook endpoint at the service is not as it should be.",
  unsupported_sort: "The service does not sort a list as it was asked to.",
};

/** A class's name in filters and lists. */
export const className = (name: FindingClass): string =>
  name === "identity" ? "broken rule" : name.replaceAll("_", " ");

/** The title of a finding, in a few words. */
export function findingTitle({ class: kind, identity }: Pick<FindingRow, "class" | "identity">): string {
  if (identity !== null) return `rule ${withoutControls(identity)}`;
  return className(kind as FindingClass);
}

/** Causes of a difference between mirror and service. */
export const causeMeanings: Readonly<Record<string, string>> = {
  missed_webhook: "no webhook announced the change",
  late: "the webhook came late",
  out_of_band_edit: "the service changed it without an event",
  our_fault: "Tallyhook knew the state and did not show it",
  unexplained: "not explained",
  initial_import: "it existed before the mirror was filled",
};

export const stateTones: Readonly<Record<FindingState, Tone>> = {
  open: "warn",
  reopened: "warn",
  acknowledged: "calm",
  healed: "good",
};

export const runTones: Readonly<Record<RunRow["state"], Tone>> = {
  running: "calm",
  complete: "good",
  incomplete: "bad",
  abandoned: "warn",
};

/** Descriptions of the kinds of runs. */
export const kindMeanings: Readonly<Record<RunRow["kind"], string>> = {
  nightly: "new and open objects, and a part of the history, as every night",
  full: "everything from the first record on",
  range: "what was created between two times",
  import: "fills an empty mirror",
};
