import { createHash, randomBytes } from "node:crypto";
import type { Knex } from "knex";
import { type Role, isRole } from "./permissions.ts";
import { revoke } from "./revoke.ts";

/** A session ends when it is not used for so long, and when it is so old. */
const [idleMs, oldestMs] = [12 * 3_600_000, 7 * 86_400_000];

export type SignInMethod = "password" | "link" | "oidc" | "proxy";

export interface Browser {
  address: string;
  userAgent: string;
  /** The browser's former session, which ends; null where it had none. */
  replaces: Pick<Session, "id" | "accountId"> | null;
}

export interface NewSession extends Browser {
  accountId: number;
  method: SignInMethod;
  now: Date;
}

const longestUserAgent = 300;

/**
 * Begins a session and returns its token, which only the browser keeps. Ends the one that the browser had, and removes
 * the account's expired sessions. Needs the transaction that records it.
 */
export async function beginSession(trx: Knex.Transaction, session: NewSession): Promise<string> {
  const { accountId, method, address, userAgent, replaces, now } = session;
  if (replaces !== null) await revoke(trx, replaces.accountId, "sign-in.done", replaces.id);
  await trx("people.sessions").where({ account_id: accountId }).where(isOver(now)).delete();
  const token = newToken();
  await trx.raw(
    `insert into people.sessions
       (token_hash, account_id, account_version, method, address, user_agent, began_at, last_seen_at)
     select ?, id, version, ?, ?, ?, ?, ? from people.accounts where id = ?`,
    [hashOf(token), method, address, userAgent.slice(0, longestUserAgent), now, now, accountId],
  );
  return token;
}

/** The session of a signed-in person. */
export interface Session {
  id: string;
  accountId: number;
  email: string;
  roles: readonly Role[];
  method: SignInMethod;
}

/** A session, and the token that the browser must have from now on, where that has changed. */
export interface FoundSession {
  session: Session;
  newToken: string | null;
}

/** So often a request is noted as the last use. */
const noteEveryMs = 60_000;

/**
 * Finds the session of a token; null if the session expired or was ended, or its account is disabled. A session that
 * began before its account's roles changed gets another token. One statement, and a second one once a minute and for a
 * new token.
 */
export async function findSession(db: Knex, token: string, now: Date): Promise<FoundSession | null> {
  const hash = hashOf(token);
  const { rows } = await db.raw<{ rows: SessionRow[] }>(
    `select s.id, s.account_id, s.account_version, s.method, s.began_at, s.last_seen_at, a.email, a.roles, a.version
     from people.sessions s join people.accounts a on a.id = s.account_id
     where s.token_hash = ? and a.disabled_at is null`,
    [hash],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const isIdle = now.getTime() - row.last_seen_at.getTime() >= idleMs;
  const isOld = now.getTime() - row.began_at.getTime() >= oldestMs;
  if (isIdle || isOld) return null;
  const session: Session = {
    id: row.id,
    accountId: Number(row.account_id),
    email: row.email,
    roles: row.roles.filter(isRole),
    method: row.method,
  };
  if (row.account_version !== row.version) {
    const next = newToken();
    const changed = await db("people.sessions")
      .where({ token_hash: hash })
      .update({ token_hash: hashOf(next), account_version: row.version, last_seen_at: now });
    // Another request of the same browser has had it changed: that answer brings the token.
    return { session, newToken: changed > 0 ? next : null };
  }
  if (now.getTime() - row.last_seen_at.getTime() >= noteEveryMs) {
    await db("people.sessions").where({ token_hash: hash }).update({ last_seen_at: now });
  }
  return { session, newToken: null };
}

/** Removes the sessions of all accounts that are over. Returns how many. One statement. */
export const removeEndedSessions = (db: Knex, now: Date): Promise<number> =>
  db("people.sessions").where(isOver(now)).delete();

export interface ListedSession {
  id: string;
  method: SignInMethod;
  address: string;
  userAgent: string;
  beganAt: Date;
  lastSeenAt: Date;
}

/** An account's sessions that are not over, the one last used first. One statement. */
export async function listSessions(db: Knex, accountId: number, now: Date): Promise<ListedSession[]> {
  const rows = await db("people.sessions")
    .where({ account_id: accountId })
    .whereNot(isOver(now))
    .orderBy("last_seen_at", "desc")
    .select<ListedRow[]>("id", "method", "address", "user_agent", "began_at", "last_seen_at");
  return rows.map(listedSession);
}

export interface SessionOfAccount extends ListedSession {
  account: { id: number; email: string };
}

/** All sessions, the last used first. One statement. */
export async function listAllSessions(db: Knex, now: Date, { limit }: { limit: number }): Promise<SessionOfAccount[]> {
  const rows = await db("people.sessions as s")
    .join("people.accounts as a", "a.id", "s.account_id")
    .whereNull("a.disabled_at")
    .whereNot(isOver(now))
    .orderBy("s.last_seen_at", "desc")
    .limit(limit)
    .select<(ListedRow & { account_id: string; email: string })[]>(
      "s.id",
      "s.method",
      "s.began_at",
      "s.last_seen_at",
      "s.address",
      "s.user_agent",
      "s.account_id",
      "a.email",
    );
  return rows.map((row) => ({
    ...listedSession(row),
    account: { id: Number(row.account_id), email: row.email },
  }));
}

/** The account of a session; null if the id is unknown. One statement. */
export async function ownerOfSession(db: Knex, id: string): Promise<{ id: number; email: string } | null> {
  const [owner] = await db("people.sessions as s")
    .join("people.accounts as a", "a.id", "s.account_id")
    .whereRaw("s.id::text = ?", [id])
    .select<{ id: string; email: string }[]>("a.id", "a.email");
  return owner === undefined ? null : { id: Number(owner.id), email: owner.email };
}

type ListedRow = Pick<SessionRow, "id" | "method" | "began_at" | "last_seen_at"> & {
  address: string;
  user_agent: string;
};

const listedSession = (row: ListedRow): ListedSession => ({
  id: row.id,
  method: row.method,
  address: row.address,
  userAgent: row.user_agent,
  beganAt: row.began_at,
  lastSeenAt: row.last_seen_at,
});

const isOver = (now: Date) => (query: Knex.QueryBuilder) =>
  void query
    .where("last_seen_at", "<=", new Date(now.getTime() - idleMs))
    .orWhere("began_at", "<=", new Date(now.getTime() - oldestMs));

interface SessionRow {
  id: string;
  account_id: string;
  account_version: number;
  method: SignInMethod;
  began_at: Date;
  last_seen_at: Date;
  email: string;
  roles: string[];
  version: number;
}

/** 256 bits. */
export const newToken = (): string => randomBytes(32).toString("base64url");

/** The stored form of a token: a reader of the database cannot sign in with it. */
export const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();
