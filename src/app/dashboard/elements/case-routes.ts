import { changingCase, noting } from "../../people/case-acts.ts";
import type { CaseKind, RecordedChange } from "../../people/cases.ts";
import { type Html, html } from "../../../platform/html.ts";
import { actRoute } from "../act-route.ts";
import type { PageDeps, Route } from "../route.ts";
import { casePath } from "./case.ts";
import { time } from "./values.ts";

export interface CaseOf {
  kind: CaseKind;
  /** The path of the case's page, with `:id`: `/dunning/:id`. */
  path: string;
  /** Whether the subject exists: only then can it be a case. */
  exists(deps: PageDeps, id: string): Promise<boolean>;
}

/** The targets of `renderCase`'s forms: assign, snooze, note. Each redirects back to the case's page. */
export function caseRoutes({ kind, path, exists }: CaseOf): readonly Route[] {
  const caseDeps = (deps: PageDeps) => ({ ...deps, exists: (id: string) => exists(deps, id) });
  const page = (id: string) => casePath(path, id);
  return [
    actRoute({
      act: changingCase,
      deps: caseDeps,
      back: ({ id }) => page(id),
      now: renderChanges,
      path: `${path}/assign`,
      given: { kind, until: null, days: null },
      done: ({ email }, { id }) => ({
        to: page(id),
        notice: email === null ? "The assignment was removed." : `Assigned to ${email}.`,
      }),
    }),
    actRoute({
      act: changingCase,
      deps: caseDeps,
      back: ({ id }) => page(id),
      now: renderChanges,
      path: `${path}/snooze`,
      given: { kind, assignee: null },
      done: ({ snoozedUntil }, { id }) => ({
        to: page(id),
        notice: snoozedUntil === null ? "The snooze has ended." : "Snoozed.",
      }),
    }),
    actRoute({
      act: noting,
      path: `${path}/note`,
      deps: caseDeps,
      given: { kind },
      back: ({ id }) => page(id),
      done: (_, { id }) => ({ to: page(id), notice: "The note was added." }),
    }),
  ];
}

const renderChanges = (changes: unknown, { timeZone }: PageDeps): Html =>
  html`<ul>
    ${(changes as readonly RecordedChange[]).map(
      (each) => html`<li>${time(each.at, timeZone)}: ${each.by} ${renderChange(each, timeZone)}</li>`,
    )}
  </ul>`;

function renderChange({ before, after }: RecordedChange, timeZone: string): Html {
  if (before.assignee !== after.assignee) {
    return after.assignee == null ? html`removed the assignment` : html`assigned it to ${after.assignee}`;
  }
  return after.snoozedUntil === null
    ? html`ended the snooze`
    : html`snoozed it until ${time(after.snoozedUntil, timeZone)}`;
}
