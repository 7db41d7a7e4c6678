import { list } from "../../../app/list.ts";
import { assignedTo } from "../../../app/people/cases.ts";
import { type Field, oneOf, optional, reference, wholeNumber } from "../../../app/people/fields.ts";
import { slicedResources } from "../coverage/slice.ts";
import { findingClasses, findingStates, severities } from "./findings.ts";
import { type FindingCursor, searchFindings } from "./search-findings.ts";

const names = [...findingStates, "any"] as const;

/** The place of a finding in the list: `high.12`. */
const cursor: Field<FindingCursor> = {
  read(typed) {
    const [, name, id] = /^([a-z]+)\.(\d{1,15})$/.exec(typed) ?? [];
    const severity = severities.find((known) => known === name);
    return severity === undefined || id === undefined ? undefined : { severity, id };
  },
  wanted: "the severity and number of a finding, such as high.12",
};

/** Findings in the order of `searchFindings`; without a state the open and reopened ones. */
export const findingList = list({
  command: "findings list",
  path: "/reconciliation/findings",
  filters: {
    state: {
      is: optional(oneOf(names)),
      flags: "--state <state>",
      says: `only in this state: ${names.join(", ")}`,
      label: "State",
      unset: "open or reopened",
    },
    severity: {
      is: optional(oneOf(severities)),
      flags: "--severity <severity>",
      says: `only ${severities.join(", ")}`,
      label: "Severity",
      unset: "all",
    },
    class: {
      is: optional(oneOf(findingClasses)),
      flags: "--class <class>",
      says: "only of this class, such as mismatch",
      label: "What",
      unset: "all",
    },
    list: {
      is: optional(oneOf(slicedResources)),
      flags: "--list <list>",
      says: "only about objects of this list, such as order",
      label: "List",
      unset: "all",
    },
    object: {
      is: optional(reference),
      flags: "--object <id>",
      says: "only about this object, by its id, or of an order by its number",
      label: "Object or order number",
    },
    run: {
      is: optional(wholeNumber(1, 999_999_999_999_999)),
      flags: "--run <n>",
      says: "only those that this run saw last",
      label: "Run",
    },
    with: {
      is: optional(reference),
      flags: "--with <account>",
      says: "only those assigned to this account, by its number or e-mail address",
      label: "With",
      unset: "anybody",
    },
    before: { is: optional(cursor), flags: "--before <place>", says: "only those after this one, such as high.12" },
  },
  async read(db, { state, list: resource, with: person, before: after, ...filter }, limit) {
    const states = state === null ? (["open", "reopened"] as const) : state === "any" ? findingStates : [state];
    const ids = person === null ? null : await assignedTo(db, "finding", person);
    return searchFindings(db, { ...filter, states, resource, ids }, { after, limit });
  },
  keyOf: ({ severity, id }) => `${severity}.${id}`,
});
