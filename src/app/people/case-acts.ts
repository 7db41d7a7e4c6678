import type { Knex } from "knex";
import type { Clock } from "../../platform/clock.ts";
import { paragraph } from "../../platform/free-text.ts";
import { type LocalDay, beginningOfDay, localTimeIn } from "../../platform/local-time.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { type Act, ActRefused, outdated } from "./act.ts";
import {
  type CaseChange,
  type CaseKind,
  type Subject,
  addNote,
  caseNames,
  changeCase,
  changesSince,
  listAssignees,
  readCase,
} from "./cases.ts";
import { type Field, oneOf, optional, reference, rowNumber, text, wholeNumber } from "./fields.ts";

interface CaseDeps {
  db: Knex;
  clock: Clock;
  timeZone: string;
  /** Whether the subject exists: only then can it be a case. */
  exists(id: string): Promise<boolean>;
}

interface CaseInput {
  kind: CaseKind;
  id: string;
}

interface ChangeInput extends CaseInput {
  /** The number of an account. Null: as it is. */
  assignee: number | "nobody" | null;
  /** It rests until this day begins, or the one so many days ahead; 0 ends the snooze. Both null: unchanged. */
  until: LocalDay | null;
  days: number | null;
}

/** The longest snooze. */
const mostDays = 366;

const subjectFields = {
  kind: oneOf<CaseKind>(["dunning", "chargeback", "finding", "alert"]),
  id: reference,
};

const assignee: Field<number | "nobody"> = {
  read: (typed) => (typed === "nobody" ? typed : rowNumber.read(typed)),
  wanted: 'the number of an account, or "nobody"',
};

const day: Field<LocalDay> = {
  read(typed) {
    const [year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(typed)?.slice(1).map(Number) ?? [];
    return date === undefined ? undefined : ({ year, month, day: date } as LocalDay);
  },
  wanted: "a day such as 2026-11-03",
};

/** Changes the assignee and the snooze. */
export const changingCase: Act<CaseDeps, ChangeInput, CaseChange & { email: string | null }> = {
  name: "case.changed",
  permission: "case:write",
  fields: {
    ...subjectFields,
    assignee: optional(assignee),
    until: optional(day),
    days: optional(wholeNumber(0, mostDays)),
  },
  async run(deps, { actor, input, decidedOn }) {
    const { db, clock } = deps;
    const subject = await requireSubject(deps, input);
    const { assignee: wanted } = input;
    const person = typeof wanted === "number" ? await requireAssignee(db, wanted) : null;
    const change: CaseChange = {
      ...(wanted === null ? {} : { assignee: person?.id ?? null }),
      ...(input.until === null && input.days === null ? {} : { snoozedUntil: restOf(deps, input) }),
    };
    if (Object.keys(change).length === 0) {
      throw new ActRefused("invalid", "Name an assignee, or the day until which it is snoozed.");
    }
    const version = decidedOn ?? String((await readCase(db, subject)).version);
    const seen = /^\d{1,9}$/.test(version) ? Number(version) : null;
    const now = clock.now();
    const isDone =
      seen !== null &&
      (await inTransaction(db, (trx) => changeCase(trx, actor, subject, change, { decidedOn: seen, now })));
    if (isDone) return { ...change, email: person?.email ?? null };
    const changes = seen === null ? [] : await changesSince(db, subject, seen);
    const what = `The assignment of this ${caseNames[subject.kind]}`;
    throw outdated(what, changes.length === 0 ? null : changes);
  },
};

/** Adds a note of a person with an account; the record does not repeat it. */
export const noting: Act<CaseDeps, CaseInput & { text: string }, null> = {
  name: "case.noted",
  permission: "case:write",
  fields: { ...subjectFields, text: text(paragraph) },
  async run(deps, { actor, input }) {
    const subject = await requireSubject(deps, input);
    const { accountId } = actor;
    if (accountId === null) {
      throw new ActRefused("forbidden", "Only a person with an account can write a note.");
    }
    const note = { text: input.text, now: deps.clock.now() };
    await inTransaction(deps.db, (trx) => addNote(trx, { ...actor, accountId }, subject, note));
    return null;
  },
};

async function requireSubject({ exists }: CaseDeps, { kind, id }: CaseInput): Promise<Subject> {
  if (await exists(id)) return { kind, id };
  throw new ActRefused("unknown", `There is no ${caseNames[kind]} "${id}".`);
}

/** Throws `ActRefused` for an account that cannot sign in. */
async function requireAssignee(db: Knex, wanted: number): Promise<{ id: number; email: string }> {
  const found = (await listAssignees(db)).find(({ id }) => id === wanted);
  if (found !== undefined) return found;
  const message = "There is no such account, or it is disabled. Nothing was changed.";
  throw new ActRefused("invalid", message);
}

const dayMs = 86_400_000;

/** The beginning of the day until which it rests; null: the snooze ends. Throws `ActRefused` for one that is over. */
function restOf({ clock, timeZone }: CaseDeps, { until, days }: ChangeInput): Date | null {
  if (days === 0) return null;
  const now = clock.now();
  const today = localTimeIn(timeZone)(now);
  const { year, month, day: date } = until ?? { ...today, day: today.day + (days ?? 0) };
  const at = beginningOfDay({ year, month, day: date }, timeZone);
  if (at > now && at.getTime() - now.getTime() < mostDays * dayMs) return at;
  throw new ActRefused("invalid", "Name a day in the future, within a year. Nothing was changed.");
}
