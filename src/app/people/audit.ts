import type { Knex } from "knex";

/** The acting person, and the door. */
export interface Actor {
  /** The account; null for a command. */
  accountId: number | null;
  /** The account's e-mail address, or the name that a command was given. */
  name: string;
  via: "dashboard" | "command line";
  /** The address that a request came from. */
  address: string | null;
}

export interface RecordedAct {
  /** The act's name: a thing and a participle, as in `event.replayed`. */
  action: string;
  subject?: { kind: string; id: string };
  /** The changed values. No secrets, and no personal data but the actor's. */
  before?: RecordedValues;
  after?: RecordedValues;
}

/**
 * Values by name. People's texts may name a customer, and no erasure reaches a record: such texts are stored with their
 * subject, where `customers erase` searches them.
 */
type RecordedValues = Readonly<Record<string, unknown>> & {
  readonly [name in "reason" | "note" | "text"]?: never;
};

/** Records an act. Needs the act's transaction, so that both commit together. */
export async function recordAct(trx: Knex.Transaction, actor: Actor, act: RecordedAct): Promise<void> {
  await trx("people.audit").insert({
    account_id: actor.accountId,
    actor: actor.name,
    via: actor.via,
    address: actor.address,
    action: act.action,
    subject_kind: act.subject?.kind ?? null,
    subject_id: act.subject?.id ?? null,
    before: act.before === undefined ? null : JSON.stringify(act.before),
    after: act.after === undefined ? null : JSON.stringify(act.after),
  });
}

export interface AuditRow {
  id: number;
  at: Date;
  actor: string;
  via: Actor["via"];
  address: string | null;
  action: string;
  subject: { kind: string; id: string } | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

export interface AuditQuery {
  actor?: string | null;
  action?: string | null;
  subject?: { kind?: string | null; id?: string | null };
  since?: Date | null;
  until?: Date | null;
  /** Rows older than this one: its `id`. */
  before?: number | null;
  limit: number;
}

/** The newest acts first. One statement. */
export async function readAudit(
  db: Knex,
  { actor = null, action = null, subject = {}, since = null, until = null, before = null, limit }: AuditQuery,
): Promise<AuditRow[]> {
  const { kind = null, id = null } = subject;
  const query = db("people.audit").orderBy("id", "desc").limit(limit);
  if (actor !== null) void query.where({ actor });
  if (action !== null) void query.where({ action });
  if (kind !== null) void query.where({ subject_kind: kind });
  if (id !== null) void query.where({ subject_id: id });
  if (since !== null) void query.where("at", ">=", since);
  if (until !== null) void query.where("at", "<", until);
  if (before !== null) void query.where("id", "<", before);
  const rows = await query.select<StoredAct[]>("*");
  return rows.map(({ id, subject_kind: kind, subject_id: subjectId, ...row }) => ({
    id: Number(id),
    at: row.at,
    actor: row.actor,
    via: row.via,
    address: row.address,
    action: row.action,
    subject: kind === null || subjectId === null ? null : { kind, id: subjectId },
    before: row.before,
    after: row.after,
  }));
}

/** One value that an act changed; null where it was absent. */
export interface ChangedValue {
  name: string;
  before: string | null;
  after: string | null;
}

/** An act's changes, value by value, as text. */
export function changedValues({ before, after }: Pick<AuditRow, "before" | "after">): ChangedValue[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names].map((name) => ({
    name,
    before: valueText(before?.[name]),
    after: valueText(after?.[name]),
  }));
}

function valueText(value: unknown): string | null {
  if (value === undefined) return null;
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(valueText).join(", ") || "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface StoredAct {
  id: string;
  at: Date;
  actor: string;
  via: Actor["via"];
  address: string | null;
  action: string;
  subject_kind: string | null;
  subject_id: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}
