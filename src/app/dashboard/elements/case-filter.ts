import type { Case } from "../../people/cases.ts";
import { oneOf, optional } from "../../people/fields.ts";
import { isResting } from "./case.ts";

/** The filters of a list of cases. */
export const caseFilters = {
  who: {
    is: optional(oneOf(["mine", "unassigned"] as const)),
    label: "Assigned to",
    unset: "all",
    choices: [
      ["mine", "me"],
      ["unassigned", "nobody"],
    ],
  },
  snoozed: {
    is: optional(oneOf(["hide", "only"] as const)),
    label: "Snoozed",
    unset: "all",
    choices: ["hide", ["only", "only these"]],
  },
} as const;

export interface CaseFilter {
  who: "mine" | "unassigned" | null;
  snoozed: "hide" | "only" | null;
}

/** Whether a filter shows a case to the account `own`. `now`: by the wall clock. */
export const isCaseShown = (
  current: Case,
  { who, snoozed }: CaseFilter,
  { own, now }: { own: number; now: Date },
): boolean =>
  (who !== "mine" || current.assignee?.id === own) &&
  (who !== "unassigned" || current.assignee === null) &&
  (snoozed === null || isResting(current, now) === (snoozed === "only"));
