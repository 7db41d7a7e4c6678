import type { Knex } from "knex";
import { ConfigurationError, UnreachableError } from "../errors.ts";
import { errorCode } from "./errors.ts";

/** A physical standby and the primary that it follows, each with the setting to name in messages. */
export interface StandbyPair {
  primary: { db: Knex; variable: string };
  standby: { db: Knex; variable: string };
}

/** How far a standby is behind its primary. */
export interface Replay {
  /** Everything committed on the primary before this time, by the primary's clock, can be read on the standby. */
  until: Date;
  /** From `until` to the primary's clock; 0 where the replay was complete. */
  lagMs: number;
  /** WAL that the primary has written and the standby has not replayed. */
  lagBytes: number;
}

/**
 * Reads how far the standby is, at the least: a snapshot taken later shows more. Throws `ConfigurationError` where it
 * is no standby of this primary, `UnreachableError` where its lag is unknown. Two statements, three where the standby
 * is ahead of the first answer.
 */
export async function readReplay({ primary, standby }: StandbyPair): Promise<Replay> {
  const first = await readState(primary.db);
  const behind = await readState(standby.db);
  // A standby is never ahead of its primary, but both moved between the two statements, so the primary is read once
  // more.
  const ahead = behind.position > first.position ? await readState(primary.db) : first;
  const names = { primary: primary.variable, standby: standby.variable };
  const problem = pairProblem({ primary: ahead, standby: behind }, names);
  if (problem !== null) throw new ConfigurationError(problem);
  const replay = replayOf(first, behind);
  if (replay !== null) return replay;
  throw new UnreachableError(
    `${standby.variable}: the standby has replayed no transaction since its start and is not done yet, so its lag ` +
      "is not " +
      `known. Try again shortly. ${advice(behind)}`.trimEnd(),
  );
}

/** A server's own report of its state. */
export interface ServerState {
  /** The same on a primary and all its standbys. */
  system: string;
  /** The number of the database, which a standby has from its primary. */
  database: string;
  isStandby: boolean;
  /** The server's clock. */
  at: Date;
  /** In bytes of WAL: written to disk; on a standby, replayed. */
  position: bigint;
  /** When the last transaction that a standby replayed was committed; null if there is none since its start. */
  replayedAt: Date | null;
  isPaused: boolean;
  /** Whether a standby has a process that receives WAL. */
  isReceiving: boolean;
}

/** Needs no privilege. */
async function readState(db: Knex): Promise<ServerState> {
  const { rows } = await db.raw<{ rows: (Omit<ServerState, "position"> & { position: string })[] }>(
    `select (select system_identifier from pg_control_system())::text as system,
            (select oid from pg_database where datname = current_database())::text as database,
            is_standby as "isStandby", clock_timestamp() as at,
            (case when is_standby then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end
              - '0/0'::pg_lsn)::text as position,
            case when is_standby then pg_last_xact_replay_timestamp() end as "replayedAt",
            case when is_standby then pg_get_wal_replay_pause_state() <> 'not paused' else false end as "isPaused",
            exists (select from pg_stat_wal_receiver where pid is not null) as "isReceiving"
     from (select pg_is_in_recovery() as is_standby offset 0) server`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the server does not say what it is");
  return { ...row, position: BigInt(row.position ?? 0) };
}

type Pair<T> = Readonly<Record<"primary" | "standby", T>>;

/** The reason why the standby's state does not describe the primary, and the remedy; null where it does. */
export function pairProblem({ primary, standby }: Pair<ServerState>, names: Pair<string>): string | null {
  const toPrimary = `Point ${names.primary} at the primary, and ${names.standby} at a standby of it.`;
  const otherwise = `Point it at a standby of the server of ${names.primary}, or leave it out to read from the primary.`;
  if (primary.isStandby) {
    return `${names.primary}: the server is a standby, so it does not report how far the primary is. ${toPrimary}`;
  }
  if (standby.system !== primary.system) {
    return (
      `${names.standby}: the server belongs to another cluster (system identifier ${standby.system}, that of ` +
      `${names.primary} is ${primary.system}), so it holds another mirror. ${otherwise}`
    );
  }
  if (!standby.isStandby) {
    return (
      `${names.standby}: the server is no standby: it is the primary itself, or was made one. Its lag is unknown. ` +
      otherwise
    );
  }
  if (standby.database !== primary.database) {
    return `${names.standby}: it names another database than ${names.primary}. Name the same database in both.`;
  }
  if (standby.position > primary.position) {
    return (
      `${names.standby}: the standby has replayed what the server of ${names.primary} never wrote: it follows ` +
      `another server, such as a new primary or one that was restored from the same backup. ${toPrimary}`
    );
  }
  return null;
}

/** Null where the lag is unknown. */
export function replayOf(primary: ServerState, standby: ServerState): Replay | null {
  if (standby.position >= primary.position) return { until: primary.at, lagMs: 0, lagBytes: 0 };
  if (standby.replayedAt === null) return null;
  return {
    until: standby.replayedAt,
    lagMs: Math.max(0, primary.at.getTime() - standby.replayedAt.getTime()),
    lagBytes: Number(primary.position - standby.position),
  };
}

/** The obstacles that keep a standby from catching up, each with a remedy; empty where none is known. */
function advice({ isPaused, isReceiving }: Pick<ServerState, "isPaused" | "isReceiving">): string {
  if (isPaused) return "Its replay is paused: select pg_wal_replay_resume() on it.";
  if (!isReceiving) {
    return "It receives nothing from a primary: check primary_conninfo, and the primary's pg_hba.conf and slots.";
  }
  return "";
}

/** The same, of a server; for messages about a lag. One statement. */
export async function lagAdvice(standby: Knex): Promise<string> {
  return advice(await readState(standby));
}

/**
 * True for a statement that a standby has cancelled because it held up the replay. The transaction has to be repeated
 * as a whole. For read-only transactions, in which these codes have no other cause.
 */
export function isRecoveryConflict(error: unknown): boolean {
  const code = errorCode(error);
  return code === "40001" || code === "40P01";
}
