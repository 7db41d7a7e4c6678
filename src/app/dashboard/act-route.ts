import { type Act, ActRefused, type Refusal } from "../people/act.ts";
import type { Field } from "../people/fields.ts";
import { type Html, html } from "../../platform/html.ts";
import { withoutControls } from "../../platform/readable-text.ts";
import { versionOf } from "./elements/decided-on.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "./route.ts";

/** The door of an act on the dashboard: where a form leads to. */
export interface ActRoute<Deps, Input, Done> {
  act: Act<Deps, Input, Done>;
  /** Has fields' names in it: `/alerts/:alert/acknowledge`. The other fields come from the form. */
  path: string;
  deps(deps: PageDeps, request: PageRequest): Deps | Promise<Deps>;
  /** Fields that the door gives itself. */
  given?: Partial<Input>;
  /** The page to return to after a refusal. */
  back(input: Input): string;
  /** Shows the current state, where it differs from the one that the form was filled in on. */
  now?(now: unknown, deps: PageDeps, request: PageRequest): Html | Promise<Html>;
  done(done: Done, input: Input, request: PageRequest): { to: string; notice?: string };
}

const statuses: Readonly<Record<Refusal, number>> = {
  unknown: 404,
  invalid: 400,
  forbidden: 403,
  outdated: 409,
  hindered: 409,
};

/**
 * The route of an act. Answers 400 for an invalid field, 404, 409 with the present state, and otherwise redirects back
 * with a notice. A form without the version that the person saw is outdated.
 */
export function actRoute<Deps, Input, Done>(door: ActRoute<Deps, Input, Done>): Route {
  const { act, path } = door;
  return {
    method: "POST",
    path,
    access: act.permission,
    door: { act, given: door.given ?? {}, back: (input) => door.back(input as Input) },
    async answer(pageDeps, request) {
      const input = readInput(door, request);
      const { actor, form } = request;
      const deps = await door.deps(pageDeps, request);
      const call = { actor, input, decidedOn: versionOf(form) };
      const done = await act.run(deps, call).catch(async (error: unknown) => {
        if (!(error instanceof ActRefused)) throw error;
        const now = error.now === null ? null : await door.now?.(error.now, pageDeps, request);
        throw pageErrorOf(error, html`${now ?? null}${lookAgain(door.back(input))}`);
      });
      return { kind: "redirect", ...door.done(done, input, request) };
    },
  };
}

function readInput<Deps, Input, Done>({ act, given }: ActRoute<Deps, Input, Done>, request: PageRequest): Input {
  const own: Readonly<Record<string, unknown>> = given ?? {};
  const fields = Object.entries<Field<unknown>>(act.fields);
  const values = fields.map(([name, field]) => [name, name in own ? own[name] : readField(name, field, request)]);
  return Object.fromEntries(values) as Input;
}

function readField<T>(name: string, field: Field<T>, { params, form }: PageRequest): T {
  const typed = params[name] ?? typedIn(form, formName(name), field.isList === true);
  if (typed.trim() === "" && field.absent !== undefined) return field.absent.value;
  const value = field.read(typed);
  if (value !== undefined) return value;
  // An improper name in the address counts as unknown.
  if (params[name] !== undefined) throw new PageError(404, "There is no page at this address.");
  throw new PageError(
    400,
    `The ${formName(name).replaceAll("-", " ")} has to be ${field.wanted}. Nothing was done: correct it and send ` +
      "it again.",
  );
}

const typedIn = (form: URLSearchParams, name: string, isList: boolean): string =>
  isList ? form.getAll(name).join(" ") : (form.get(name) ?? "");

/** The name of a field in forms: `up-to`. */
export const formName = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const lookAgain = (path: string): Html => html`<p><a href="${path}">Look at it again</a></p>`;

/** Turns a refusal into a page's error. `details`: help, where the thing is known. */
export const pageErrorOf = (error: ActRefused, details: Html | null = null): PageError =>
  new PageError(statuses[error.refusal], withoutControls(error.message), {
    cause: error,
    details: error.refusal === "unknown" ? null : details,
  });
