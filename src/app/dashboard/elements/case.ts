import { type Case, type Subject, listAssignees, readCase, readNotes } from "../../people/cases.ts";
import { recordAct } from "../../people/audit.ts";
import { paragraph } from "../../../platform/free-text.ts";
import { type Html, html } from "../../../platform/html.ts";
import { dayIn } from "../../../platform/local-time.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { linesWithoutControls } from "../../../platform/readable-text.ts";
import type { PageDeps, PageRequest } from "../route.ts";
import { decidedOn } from "./decided-on.ts";
import { state, time } from "./values.ts";
import { hiddenText, mayReadTexts } from "./personal.ts";

/** A case as a visitor sees it. */
export interface CaseView {
  /** The path of its page; its forms' addresses are below it. */
  path: string;
  current: Case;
  /** The newest first; `text` is null for a visitor who may not read it. */
  notes: readonly { at: Date; author: string; text: string | null }[];
  /** Null for a visitor who may not change the case. */
  forms: { own: { id: number; email: string }; assignees: Assignees } | null;
  now: Date;
  timeZone: string;
}

type Assignees = Awaited<ReturnType<typeof listAssignees>>;

/** The path of a subject's own page: `/dunning/:id` with its id. */
export const casePath = (path: string, id: string): string => path.replace(":id", encodeURIComponent(id));

/**
 * Reads a case for its page at `path`, which is like `/dunning/:id`. Notes are free text about people: they are shown
 * to visitors with `person:read`, and the access is recorded. Three statements at most, without the record.
 */
export async function readCaseView(
  { db, clock, timeZone }: PageDeps,
  { visitor, actor }: Pick<PageRequest, "visitor" | "actor">,
  subject: Subject,
  path: string,
): Promise<CaseView> {
  const mayWrite = visitor.permissions.has("case:write");
  const mayRead = mayReadTexts(visitor.permissions);
  const [current, notes, assignees] = await Promise.all([
    readCase(db, subject),
    readNotes(db, subject),
    mayWrite ? listAssignees(db) : [],
  ]);
  if (mayRead && notes.length > 0) {
    await inTransaction(db, (trx) => recordAct(trx, actor, { action: "notes.read", subject }));
  }
  const { accountId, email } = visitor.session;
  return {
    path: casePath(path, subject.id),
    current,
    notes: notes.map((note) => (mayRead ? note : { ...note, text: null })),
    forms: mayWrite ? { own: { id: accountId, email }, assignees } : null,
    now: clock.now(),
    timeZone,
  };
}

/** The case's assignee, snooze and notes; with forms for visitors who may change it. */
export function renderCase(view: CaseView): Html {
  const { current, now, timeZone } = view;
  return html`<section class="card case" aria-labelledby="case">
    <h2 id="case">Assignment</h2>
    <dl class="facts">
      <dt>Assigned to</dt>
      <dd>${current.assignee?.email ?? "no one yet"}</dd>
      ${
        isResting(current, now) &&
        html`<dt>Snoozed until</dt>
          <dd>${time(current.snoozedUntil, timeZone)}</dd>`
      }
    </dl>
    ${view.forms !== null && renderForms(view, view.forms)}
    <h3>Notes</h3>
    ${renderNotes(view)}
  </section>`;
}

const quickRests = [
  [1, "Until tomorrow"],
  [3, "For 3 days"],
  [7, "For a week"],
] as const;

function renderForms(
  { path, current, now, timeZone }: CaseView,
  { own, assignees }: NonNullable<CaseView["forms"]>,
): Html {
  const version = decidedOn(current.version);
  return html`${
      current.assignee?.id !== own.id &&
      html`<form method="post" action="${path}/assign">
        ${version}<button name="assignee" value="${own.id}">Assign to me</button>
      </form>`
    }
    <form class="filters" method="post" action="${path}/assign">
      ${version}
      <div>
        <label for="assignee">Assign to</label>
        <select id="assignee" name="assignee">
          <option value="nobody">no one</option>
          ${assignees.map(({ id, email }) => html`<option value="${id}" ${id === current.assignee?.id && selected}>${email}</option>`)}
        </select>
      </div>
      <button class="second">Assign</button>
    </form>
    <form class="filters" method="post" action="${path}/snooze">
      ${version}
      <div>
        <label for="until">Snooze until</label>
        <input id="until" name="until" type="date" required min="${dayIn(timeZone, new Date(now.getTime() + dayMs))}" />
      </div>
      <button class="second">Snooze</button>
    </form>
    <form class="row" method="post" action="${path}/snooze">
      ${version}
      ${quickRests.map(([days, name]) => html`<button class="plain" name="days" value="${days}">${name}</button>`)}
      ${isResting(current, now) && html`<button class="plain" name="days" value="0">End the snooze</button>`}
    </form>`;
}

const dayMs = 86_400_000;
const selected: Html = html`selected`;

function renderNotes({ notes, path, forms, timeZone }: CaseView): Html {
  const isHidden = notes.some(({ text }) => text === null);
  return html`${notes.length === 0 && html`<p class="hint">There are no notes yet.</p>`}
  ${isHidden && html`<p class="hint">${hiddenText}</p>`}
  ${
    notes.length > 0 &&
    html`<ol class="notes plain-list">
      ${notes.map(
        ({ at, author, text }) =>
          html`<li>
            <p class="hint">${author}, ${time(at, timeZone)}</p>
            ${text !== null && html`<p class="free-text">${linesWithoutControls(text)}</p>`}
          </li>`,
      )}
    </ol>`
  }
  ${
    forms !== null &&
    html`<form method="post" action="${path}/note">
      <label for="note">Add a note</label>
      <textarea id="note" name="text" rows="3" maxlength="${paragraph.longest}" required></textarea>
      <p class="hint">Removed for good when the customer is erased. No card numbers.</p>
      <button class="second">Add the note</button>
    </form>`
  }`;
}

/** For lists: the assignee and the snooze. */
export function caseMarks(current: Case, { own, now, timeZone }: { own: number; now: Date; timeZone: string }): Html {
  const { assignee } = current;
  const who = assignee === null ? "unassigned" : assignee.id === own ? "with you" : `with ${assignee.email}`;
  return html`<span class="case-mark">${who}</span> ${
      isResting(current, now) &&
      html`${state("snoozed", "calm")} <span class="hint">until ${time(current.snoozedUntil, timeZone)}</span>`
    }`;
}

/** Whether it is snoozed until a future time. */
export const isResting = (current: Case, now: Date): current is Case & { snoozedUntil: Date } =>
  current.snoozedUntil !== null && current.snoozedUntil > now;
