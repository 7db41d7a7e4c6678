import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { type Actor, recordAct } from "./audit.ts";

/** The kinds of cases. A renewal is known by its order, a chargeback by its order as well. */
export type CaseKind = "dunning" | "chargeback" | "finding" | "alert";

/** The name of a kind within a sentence. */
export const caseNames: Readonly<Record<CaseKind, string>> = {
  dunning: "renewal",
  chargeback: "chargeback",
  finding: "finding",
  alert: "alert",
};

export interface Subject {
  kind: CaseKind;
  id: string;
}

/** The assignee and the snooze of a case. A case without changes is `untouched`. */
export interface Case {
  assignee: { id: number; email: string } | null;
  snoozedUntil: Date | null;
  /** The version that a change must name as the one it was decided on; 0: never changed. */
  version: number;
}

export const untouched: Case = { assignee: null, snoozedUntil: null, version: 0 };

export interface Note {
  at: Date;
  author: string;
  text: string;
}

/** Cases by the id of their subject; unchanged ones are absent. One statement. */
export async function readCases(db: Knex, kind: CaseKind, ids: readonly string[]): Promise<ReadonlyMap<string, Case>> {
  const rows = await db("people.cases as c")
    .leftJoin("people.accounts as a", "a.id", "c.assignee")
    .where("c.subject_kind", kind)
    .whereRaw("c.subject_id = any(?)", [[...ids]])
    .select<
      {
        subject_id: string;
        assignee: string | null;
        email: string | null;
        snoozed_until: Date | null;
        version: number;
      }[]
    >("c.subject_id", "c.assignee", "a.email", "c.snoozed_until", "c.version");
  return new Map(
    rows.map((row) => [
      row.subject_id,
      {
        assignee: row.assignee === null || row.email === null ? null : { id: Number(row.assignee), email: row.email },
        snoozedUntil: row.snoozed_until,
        version: row.version,
      },
    ]),
  );
}

export const readCase = async (db: Knex, { kind, id }: Subject): Promise<Case> =>
  (await readCases(db, kind, [id])).get(id) ?? untouched;

/**
 * The subjects of the cases of an account, by its number or e-mail address: up to 1,000 ids, the last changed first. One
 * statement.
 */
export const assignedTo = (db: Knex, kind: CaseKind, account: string): Promise<string[]> =>
  db("people.cases")
    .where({ subject_kind: kind })
    .whereIn("assignee", db("people.accounts").select("id").whereRaw("? in (id::text, email)", [account]))
    .orderBy("changed_at", "desc")
    .limit(1_000)
    .pluck<string[]>("subject_id");

export interface CaseChange {
  /** An account's number; null: unassigned. Absent: unchanged. */
  assignee?: number | null;
  /** Null: it rests no more. Absent: as it is. */
  snoozedUntil?: Date | null;
}

/**
 * Changes the assignee and the snooze, with the record. Returns false, and changes nothing, where the case no longer
 * has the version `decidedOn`. Needs a transaction.
 */
export async function changeCase(
  trx: Knex.Transaction,
  actor: Actor,
  subject: Subject,
  { assignee, snoozedUntil }: CaseChange,
  { decidedOn, now }: { decidedOn: number; now: Date },
): Promise<boolean> {
  const before = await readCase(trx, subject);
  const row = {
    assignee: assignee === undefined ? (before.assignee?.id ?? null) : assignee,
    snoozed_until: snoozedUntil === undefined ? before.snoozedUntil : snoozedUntil,
    changed_at: now,
  };
  const changed =
    decidedOn === 0
      ? await trx("people.cases")
          .insert({ subject_kind: subject.kind, subject_id: subject.id, ...row })
          .onConflict()
          .ignore()
          .returning("version")
      : await trx("people.cases")
          .where({ subject_kind: subject.kind, subject_id: subject.id, version: decidedOn })
          .update({ ...row, version: decidedOn + 1 })
          .returning("version");
  if (changed.length === 0) return false;
  await recordAct(trx, actor, {
    action: "case.changed",
    subject,
    before: { assignee: before.assignee?.id ?? null, snoozedUntil: before.snoozedUntil },
    after: { assignee: row.assignee, snoozedUntil: row.snoozed_until },
  });
  return true;
}

/** A recorded change of a case. People are named by their e-mail addresses. */
export interface RecordedChange {
  at: Date;
  by: string;
  before: { assignee: string | null; snoozedUntil: Date | null };
  after: { assignee: string | null; snoozedUntil: Date | null };
}

/** The changes of a case after its version `decidedOn`, the newest first; at most 20. One statement. */
export async function changesSince(db: Knex, { kind, id }: Subject, decidedOn: number): Promise<RecordedChange[]> {
  const { rows } = await db.raw<{
    rows: {
      at: Date;
      by: string;
      was_with: string | null;
      rested_until: Date | null;
      is_with: string | null;
      rests_until: Date | null;
    }[];
  }>(
    `select a.at, a.actor as by, former.email as was_with, (a.before->>'snoozedUntil')::timestamptz as rested_until,
            present.email as is_with, (a.after->>'snoozedUntil')::timestamptz as rests_until
     from people.audit a
     left join people.accounts former on former.id = (a.before->>'assignee')::bigint
     left join people.accounts present on present.id = (a.after->>'assignee')::bigint
     where a.subject_kind = ? and a.subject_id = ? and a.action = 'case.changed'
     order by a.id desc
     -- Every change is one version and one record.
     limit least(20, greatest(0, coalesce((
       select c.version from people.cases c where c.subject_kind = ? and c.subject_id = ?), 0) - ?))`,
    [kind, id, kind, id, decidedOn],
  );
  return rows.map((row) => ({
    at: row.at,
    by: row.by,
    before: { assignee: row.was_with, snoozedUntil: row.rested_until },
    after: { assignee: row.is_with, snoozedUntil: row.rests_until },
  }));
}

/** Within this, the same note of one person is a second click. */
const sameNoteMs = 60_000;

/**
 * Writes a note of a person with an account, with its record; the record does not repeat the text. The same note within
 * a minute changes nothing. Needs a transaction.
 */
export async function addNote(
  trx: Knex.Transaction,
  actor: Actor & { accountId: number },
  subject: Subject,
  { text, now }: { text: string; now: Date },
): Promise<void> {
  const note = {
    subject_kind: subject.kind,
    subject_id: subject.id,
    author: actor.accountId,
    text,
  };
  // The second of two clicks waits for the first.
  await trx.raw("select from people.accounts where id = ? for no key update", [actor.accountId]);
  const since = new Date(now.getTime() - sameNoteMs);
  const same = await trx("people.notes").where(note).where("at", ">", since).first("id");
  if (same !== undefined) return;
  await trx("people.notes").insert({ ...note, at: now });
  await recordAct(trx, actor, { action: "case.noted", subject });
}

/** The newest first, at most 100. */
export const readNotes = (db: Knex, { kind, id }: Subject): Promise<Note[]> =>
  db("people.notes as n")
    .join("people.accounts as a", "a.id", "n.author")
    .where({ "n.subject_kind": kind, "n.subject_id": id })
    .orderBy("n.id", "desc")
    .limit(100)
    .select<Note[]>("n.at", "a.email as author", "n.text");

/**
 * Removes what people wrote on these subjects, and on any others where `named` is true of the text, as an erasure does.
 * Needs its transaction; idempotent. Returns how many.
 */
export async function removeNotes(
  trx: Knex.Transaction,
  subjects: readonly { kind: CaseKind; ids: readonly string[] }[],
  named: (text: string) => boolean = () => false,
): Promise<number> {
  let removed = 0;
  for (const { kind, ids } of subjects) {
    removed += await trx("people.notes")
      .where({ subject_kind: kind })
      .whereRaw("subject_id = any(?::text[])", [sqlArray(ids)])
      .delete();
  }
  const others = await trx("people.notes").select<{ id: string; text: string }[]>("id", "text");
  const naming = others.flatMap(({ id, text }) => (named(text) ? [id] : []));
  const more = await trx("people.notes")
    .whereRaw("id = any(?::bigint[])", [sqlArray(naming)])
    .delete();
  return removed + more;
}

/** Accounts that can sign in: the possible assignees. */
export const listAssignees = (db: Knex): Promise<{ id: number; email: string }[]> =>
  db("people.accounts")
    .whereNull("disabled_at")
    .orderBy("email")
    .limit(200)
    .select<{ id: string; email: string }[]>("id", "email")
    .then((rows) => rows.map(({ id, email }) => ({ id: Number(id), email })));
