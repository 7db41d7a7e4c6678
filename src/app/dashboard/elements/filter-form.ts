import type { Field } from "../../people/fields.ts";
import { type Html, html } from "../../../platform/html.ts";

/** One field of the form above a list. */
export interface FilterInput {
  /** Absent: the form does not have it, such as where a page begins. */
  label?: string;
  /** Shown where nothing is set: the choice of nothing, or an example. */
  unset?: string;
  /** Default: any text. What does not fit, such as a time in place of a day, is shown as text. */
  type?: "date" | "datetime-local" | "month";
  /** Absent: the names of its field. */
  choices?: readonly Choice[];
  is?: Pick<Field<unknown>, "names">;
}

export type Choice = string | readonly [value: string, shown: string];

/** Filters that cannot be read, by name, each with a sentence. */
export type Problems = Readonly<Record<string, string>>;

interface Filtering {
  problems?: Problems;
  /** The label of the button. */
  does?: string;
}

/**
 * The form that narrows a list down, with what is set and what is wrong with it. It keeps the other parameters of the
 * address, but for the one where a page begins.
 */
export function filterForm(
  path: string,
  query: URLSearchParams,
  inputs: Readonly<Record<string, FilterInput>>,
  { problems = {}, does = "Show" }: Filtering = {},
): Html {
  const others = [...query].filter(([name]) => !Object.hasOwn(inputs, name) && name !== "before" && name !== "after");
  return html`<form class="filters" method="get" action="${path}" aria-label="${does === "Show" ? "Filter" : does}">
    ${others.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
    ${Object.entries(inputs).map(([name, input]) => {
      const problem = problems[name];
      const said = problem !== undefined && html`<p class="problem" role="alert" id="${name}-problem">${problem}</p>`;
      if (input.label === undefined) return said;
      return html`<div>
        <label for="${name}">${input.label}</label>
        ${renderInput(name, input, query.get(name) ?? "", said !== false)} ${said}
      </div>`;
    })}
    <button class="second">${does}</button>
  </form>`;
}

function renderInput(
  name: string,
  { type, unset, is, choices = is?.names }: FilterInput,
  set: string,
  isWrong: boolean,
) {
  const described = isWrong && html`aria-invalid="true" aria-describedby="${name}-problem"`;
  if (choices === undefined) {
    const shownAs = type === undefined || (set !== "" && !forms[type].test(set)) ? "text" : type;
    return html`<input
      id="${name}"
      name="${name}"
      type="${shownAs}"
      placeholder="${unset ?? null}"
      value="${set}"
      ${described}
    />`;
  }
  const isKnown = set === "" || choices.some((choice) => (typeof choice === "string" ? choice : choice[0]) === set);
  return html`<select id="${name}" name="${name}" ${described}>
    ${unset !== undefined && html`<option value="">${unset}</option>`}
    ${[...choices, ...(isKnown ? [] : [set])].map((choice) => {
      const [value, shown] = typeof choice === "string" ? [choice, choice] : choice;
      return html`<option value="${value}" ${value === set && html`selected`}>${shown}</option>`;
    })}
  </select>`;
}

/** The values that a browser shows in such an input. */
const forms = { date: /^\d{4}-\d\d-\d\d$/, "datetime-local": /^\d{4}-\d\d-\d\dT\d\d:\d\d$/, month: /^\d{4}-\d\d$/ };
