import { before, list } from "../../app/list.ts";
import { oneOf, optional, reference } from "../../app/people/fields.ts";
import { alertSeverities } from "./message.ts";
import { ruleNames } from "./settings.ts";
import { type AlertFilter, alertStates, listAlerts } from "./store.ts";

const states = ["open", "acknowledged", "silenced", "resolved", "all"] as const;

/** Alerts, the newest first; without a state those that are not resolved. */
export const alertList = list({
  command: "alerts list",
  path: "/alerts",
  filters: {
    state: {
      is: optional(oneOf(states)),
      flags: "--state <state>",
      says: `only in this state: ${states.join(", ")}`,
      label: "State",
      unset: "not resolved",
    },
    severity: {
      is: optional(oneOf(alertSeverities)),
      flags: "--severity <severity>",
      says: "only critical, error, warning or info",
      label: "Severity",
      unset: "all",
    },
    rule: {
      is: optional(oneOf(ruleNames)),
      flags: "--rule <rule>",
      says: "only of this rule, such as dunning_final",
      label: "Rule",
      unset: "all",
    },
    object: {
      is: optional(reference),
      flags: "--object <id>",
      says: "only about this order, subscription, transaction or customer",
      label: "Object",
      unset: "503dbd2b-a762-…",
    },
    before,
  },
  read: (db, { state, ...filter }, limit) => listAlerts(db, { ...filter, ...statesOf(state), limit }),
  keyOf: ({ id }) => id,
});

function statesOf(state: (typeof states)[number] | null): Pick<AlertFilter, "states" | "silenced"> {
  if (state === null) return {};
  if (state === "all") return { states: alertStates };
  return state === "silenced" ? { silenced: true } : { states: [state] };
}
