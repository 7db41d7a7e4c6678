import {
  type CaseChange,
  type CaseKind,
  type RecordedChange,
  type Subject,
  addNote,
  changeCase,
  changesSince,
  listAssignees,
} from "../../people/cases.ts";
import { paragraph } from "../../platform/free-text.ts";
import { type Html, html } from "../../platform/html.ts";
import { beginningOfDay, localTimeIn } from "../../platform/local-time.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import {
  type PageAnswer,
  type PageDeps,
  PageError,
  type PageRequest,
  type Route,
} from "../route.ts";
import { caseNames, casePath } from "./case.ts";
import { outdated, versionOf } from "./decided-on.ts";
import { requiredText } from "./form-text.ts";
import { time } from "./time.ts";

export interface CaseOf {
  kind: CaseKind;
  /** Of the page on which the case stands, with `:id`: `/dunning/:id`. */
  path: string;
  /** Whether there is such a thing: nobody looks after what is not there. */
  exists(deps: PageDeps, id: string): Promise<boolean>;
}

/** What the forms of `renderCase` lead to: assign, snooze, note. Each leads back to the page of the case. */
export const caseRoutes = (of: CaseOf): readonly Route[] => [
  {
    method: "POST",
    path: `${of.path}/assign`,
    access: "case:write",
    async answer(deps, request) {
      const assignee = await assigneeIn(deps, request.form);
      const notice = assignee === null ? "Assigned to nobody." : `Assigned to ${assignee.email}.`;
      return change(of, deps, request, { assignee: assignee?.id ?? null }, notice);
    },
  },
  {
    method: "POST",
    path: `${of.path}/snooze`,
    access: "case:write",
    async answer(deps, request) {
      const snoozedUntil = snoozeIn(request.form, deps);
      const notice = snoozedUntil === null ? "The snooze has ended." : "Snoozed.";
      return change(of, deps, request, { snoozedUntil }, notice);
    },
  },
  {
    method: "POST",
    path: `${of.path}/note`,
    access: "case:write",
    async answer(deps, request) {
      const { db, clock } = deps;
      const subject = await requireSubject(of, deps, request);
      const text = requiredText(request.form, "text", paragraph);
      const actor = { ...request.actor, accountId: request.visitor.session.accountId };
      await inTransaction(db, (trx) => addNote(trx, actor, subject, { text, now: clock.now() }));
      return { kind: "redirect", to: casePath(of.path, subject.id), notice: "The note was added." };
    },
  },
];

async function requireSubject(
  { kind, path, exists }: CaseOf,
  deps: PageDeps,
  { params }: PageRequest,
): Promise<Subject> {
  const { id = "" } = params;
  if (await exists(deps, id)) return { kind, id };
  throw new PageError(404, `There is no ${caseNames[kind]} at ${casePath(path, id).slice(0, 80)}.`);
}

async function change(
  of: CaseOf,
  deps: PageDeps,
  request: PageRequest,
  wanted: CaseChange,
  notice: string,
): Promise<PageAnswer> {
  const { db, clock } = deps;
  const subject = await requireSubject(of, deps, request);
  const version = versionOf(request.form);
  const decidedOn = /^\d{1,9}$/.test(version) ? Number(version) : null;
  const isDone =
    decidedOn !== null &&
    (await inTransaction(db, (trx) =>
      changeCase(trx, request.actor, subject, wanted, { decidedOn, now: clock.now() }),
    ));
  const to = casePath(of.path, subject.id);
  if (isDone) return { kind: "redirect", to, notice };
  const changes = decidedOn === null ? [] : await changesSince(db, subject, decidedOn);
  throw outdated(
    `Who looks after this ${caseNames[of.kind]}`,
    html`${changes.length > 0 && renderChanges(changes, deps.timeZone)}
      <p><a href="${to}">Look at it again</a></p>`,
  );
}

const renderChanges = (changes: readonly RecordedChange[], timeZone: string): Html =>
  html`<ul>
    ${changes.map(
      (each) =>
        html`<li>${time(each.at, timeZone)}: ${each.by} ${renderChange(each, timeZone)}</li>`,
    )}
  </ul>`;

function renderChange({ before, after }: RecordedChange, timeZone: string): Html {
  if (before.assignee !== after.assignee) {
    return html`assigned it to ${after.assignee ?? "nobody"}`;
  }
  return after.snoozedUntil === null
    ? html`ended the snooze`
    : html`snoozed it until ${time(after.snoozedUntil, timeZone)}`;
}

/** Null: nobody. Throws `PageError` for an account that cannot sign in. */
async function assigneeIn(
  { db }: PageDeps,
  form: URLSearchParams,
): Promise<{ id: number; email: string } | null> {
  const wanted = form.get("assignee");
  if (wanted === "") return null;
  const found = (await listAssignees(db)).find(({ id }) => String(id) === wanted);
  if (found !== undefined) return found;
  throw new PageError(400, "Nobody has this account, or it was disabled. Nothing was changed.");
}

const dayMs = 86_400_000;
const mostDays = 366;

/** The beginning of a day that the form names, or of one so many days ahead; null: the snooze ends. */
function snoozeIn(form: URLSearchParams, { clock, timeZone }: PageDeps): Date | null {
  const days = form.get("days");
  if (days === "0") return null;
  const now = clock.now();
  const until = days === null ? dayNamed(form.get("until") ?? "", timeZone) : dayAhead(days);
  if (until !== null && until > now && until.getTime() - now.getTime() < mostDays * dayMs) {
    return until;
  }
  throw new PageError(400, "Name a day to come, within a year. Nothing was changed.");

  function dayAhead(text: string): Date | null {
    if (!/^\d{1,3}$/.test(text)) return null;
    const { year, month, day } = localTimeIn(timeZone)(now);
    return beginningOfDay({ year, month, day: day + Number(text) }, timeZone);
  }
}

function dayNamed(text: string, timeZone: string): Date | null {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return null;
  const [year = 0, month = 0, day = 0] = parts;
  return beginningOfDay({ year, month, day }, timeZone);
}
