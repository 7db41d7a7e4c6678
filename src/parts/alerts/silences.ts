import type { Knex } from "knex";
import { type AlertSeverity, alertSeverities } from "./message.ts";

/** The scope of a silence: all alerts of a rule, or those with one key. */
export type Silenced = { rule: string } | { key: string };

/** The longest silence. For a longer one, turn the rule off in the settings. */
export const mostSilentHours = 720;

export interface SilenceRequest {
  of: Silenced;
  /** More severe alerts are still sent. */
  upTo: AlertSeverity;
  /** From now on: 1 to `mostSilentHours`. */
  hours: number;
  by: string;
  reason: string | null;
}

/** A silence as people see it; snake_case, like all JSON output. */
export interface SilenceRow {
  id: string;
  rule: string | null;
  key: string | null;
  up_to_severity: AlertSeverity;
  began_at: Date;
  ends_at: Date;
  began_by: string;
  reason: string | null;
  ended_at: Date | null;
  ended_by: string | null;
  is_in_force: boolean;
}

const inForce = "s.ended_at is null and s.ends_at > now()";

const severityOrder = `array[${alertSeverities.map((each) => `'${each}'`).join(", ")}]`;

/** SQL: the silence `s` is about alerts `a` of this severity. `severity` is an SQL expression. */
export const isAbout = (severity: string): string =>
  `(s.key = a.key or s.rule = a.rule)
   and array_position(${severityOrder}, ${severity}) >= array_position(${severityOrder}, s.up_to_severity)`;

/** SQL: of the silences in force that hold messages of alerts `a` of this severity, the one that ends last. */
export const holding = (severity: string): string =>
  `select s.id, s.ends_at from alerts.silences s where ${inForce} and ${isAbout(severity)}
   order by s.ends_at desc, s.id limit 1`;

const columns = (db: Knex) => [
  "s.id",
  "s.rule",
  "s.key",
  "s.up_to_severity",
  "s.began_at",
  "s.ends_at",
  "s.began_by",
  "s.reason",
  "s.ended_at",
  "s.ended_by",
  db.raw(`(${inForce}) as is_in_force`),
];

/** Not a lock of the table, which only a role with update rights on every column can take. */
const silencesLock = "pg_advisory_xact_lock(7255, hashtext('silences'))";

/**
 * Holds back the future messages of some alerts for a time. They stay in the outbox, and those of alerts still open are
 * sent when the silence ends. The alerts stay open, do not escalate during it, and their ends are sent where the alerts
 * were. Returns the silence's number. One statement.
 */
export async function beginSilence(db: Knex, { of, upTo, hours, by, reason }: SilenceRequest): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ id: string }] }>(
    `insert into alerts.silences (rule, key, up_to_severity, began_at, ends_at, began_by, reason)
     select :rule, :key, :upTo, now(), now() + make_interval(hours => :hours), :by, :reason
     from (select ${silencesLock}) as held returning id`,
    {
      rule: "rule" in of ? of.rule : null,
      key: "key" in of ? of.key : null,
      upTo,
      hours,
      by,
      reason,
    },
  );
  return Number(rows[0].id);
}

/**
 * Keeps other transactions from starting a silence until this one ends, for decisions about silences in force; reads
 * continue.
 */
export const lockSilences = async (trx: Knex.Transaction): Promise<void> =>
  void (await trx.raw(`select ${silencesLock}`));

export type EndedSilence = "ended" | "over" | "unknown";

/**
 * Ends a silence before its time: held-back messages are due immediately. Needs a transaction. Repeating it changes
 * nothing.
 */
export async function endSilence(trx: Knex.Transaction, { id, by }: { id: number; by: string }): Promise<EndedSilence> {
  const changed = await trx("alerts.silences as s")
    .where({ id })
    .whereRaw(inForce)
    .update({ ended_at: trx.fn.now(), ended_by: by });
  if (changed === 0) return (await findSilence(trx, id)) === null ? "unknown" : "over";
  await trx("alerts.outbox")
    .where({ state: "pending", silence_id: id })
    .update({ due_at: trx.fn.now(), silence_id: null });
  return "ended";
}

/** Null for an unknown number. One statement. */
export async function findSilence(db: Knex, id: number): Promise<SilenceRow | null> {
  const row = await db("alerts.silences as s").where({ id }).first<SilenceRow | undefined>(columns(db));
  return row ?? null;
}

/** The same; it stays as it is until the transaction ends. */
export async function lockSilence(trx: Knex.Transaction, id: number): Promise<SilenceRow | null> {
  const row = await trx("alerts.silences as s").where({ id }).forUpdate().first<SilenceRow | undefined>(columns(trx));
  return row ?? null;
}

/** The silences in force, the one that ends next first; or the newest of all. One statement. */
export function listSilences(
  db: Knex,
  { all = false, limit }: { all?: boolean; limit: number },
): Promise<SilenceRow[]> {
  const query = db("alerts.silences as s").limit(limit);
  if (all) void query.orderBy("s.id", "desc");
  else void query.whereRaw(inForce).orderBy(["s.ends_at", "s.id"]);
  return query.select<SilenceRow[]>(columns(db));
}

/** The silences of an alert's key and rule since that time, the newest first; at most 20. One statement. */
export const silencesSince = (
  db: Knex,
  { key, rule }: { key: string; rule: string },
  since: Date,
): Promise<SilenceRow[]> =>
  db("alerts.silences as s")
    .where((about) => void about.where("s.key", key).orWhere("s.rule", rule))
    .whereRaw("coalesce(s.ended_at, s.ends_at) > ?", [since])
    .orderBy("s.id", "desc")
    .limit(20)
    .select<SilenceRow[]>(columns(db));
