import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { newerMigrations, refusingMigrations } from "../../../platform/postgres/migrations.ts";
import { type ChangedObject, changedObjects } from "../../../platform/postgres/schema-objects.ts";
import { someOf } from "../../../platform/readable-text.ts";
import { queuePoolSizes } from "../../../core/queue/backend.ts";
import { poolSizes } from "../../../app/create-runtime.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { isRestoreOpen } from "../../../app/open-restore.ts";
import { pendingSchema } from "../../../app/schema.ts";
import { type CheckResult, failed, ok, skipped, warning } from "../../../app/check-result.ts";

/** Checks that the database answers and has the tables of this version. */
export async function checkDatabase(runtime: Pick<Runtime, "db" | "parts">): Promise<CheckResult> {
  const db = await runtime.db();
  const pending = await pendingSchema(db, runtime.parts);
  if (pending.length > 0) {
    return failed("database", `lacks ${someOf(pending)}`, `run "${tallyhook("migrate")}"`);
  }
  const refusing = await refusingMigrations(db);
  if (refusing.length > 0) {
    return failed(
      "database",
      "was migrated by a newer version, which took away what this one may need " +
        `(${someOf(refusing.map(({ name }) => name))})`,
      "start that version or a later one; the way back is a backup (docs/upgrading.md)",
    );
  }
  if (await isRestoreOpen(db)) {
    return failed(
      "database",
      "was filled from a backup, and what the lost system had sent is not recorded: nothing starts",
      `run "${tallyhook("restored")}", or make the database again and restore again (docs/backup.md)`,
    );
  }
  const newer = await newerMigrations(db);
  return newer.length === 0
    ? ok("database", "answers, all migrations are applied")
    : warning(
        "database",
        `was migrated by a newer version (it has ${someOf(newer)})`,
        "run that version here as well, since this one does not know what changed",
      );
}

/**
 * Checks that functions, views and triggers are unchanged since `migrate` created them. The database must be migrated.
 */
export async function checkSchemaText(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const check = "schema text";
  const changed = await changedObjects(await runtime.db());
  if (changed === null) {
    return skipped(
      check,
      `nothing is recorded for this major version of PostgreSQL; "${tallyhook("migrate")}" records it from now on`,
    );
  }
  if (changed.length === 0) return ok(check, "functions, views and triggers are unchanged since migrate made them");
  const harmful = changed.filter(({ change }) => change !== "added");
  if (harmful.length === 0) {
    return warning(
      check,
      `not of this program: ${listed(changed)}`,
      "make sure that they do not change what this program writes, or drop them",
    );
  }
  return failed(
    check,
    `changed by hand: ${listed(changed)}`,
    `reports may be wrong and the history unprotected; "${tallyhook("migrate")}" puts back the program's own`,
  );
}

const listed = (objects: readonly ChangedObject[]): string =>
  someOf(objects.map(({ kind, name, change }) => `${kind} ${name} (${change})`));

/** A server setting as a connection of this program sees it. */
export interface ServerSetting {
  name: string;
  /** In `unit`. */
  setting: string;
  unit: string | null;
  /** In a person's notation: `1GB`. */
  shown: string;
  /** The values that this server's build knows; null where it is a number or free text. */
  choices: string[] | null;
  /** Where the value is set: `source` of `pg_settings`. */
  source: string;
  /** False if a change needs a restart of the server. */
  isReloaded: boolean;
}

interface ServerFacts {
  settings: ReadonlyMap<string, ServerSetting>;
  role: string;
  isSuperuser: boolean;
  mayWrite: boolean;
  database: string;
  isStandby: boolean;
  /** The lowest limit that applies to this role: of the server, the database or the role. */
  connections: { limit: number; of: string };
}

interface Trouble {
  check: "durability" | "server";
  isFatal?: true;
  says: string;
  remedy: string;
}

const settingNames = [
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "transaction_read_only",
  "default_transaction_read_only",
  "autovacuum",
  "track_counts",
  "statement_timeout",
  "transaction_timeout",
  "idle_in_transaction_session_timeout",
  "shared_buffers",
] as const;

/** Reads, imports and reports over a large mirror may take this long. */
const shortestTimeoutMs = 60_000;
const leastSharedBuffersMb = 64;

/**
 * The most connections of the server that a receiver, a worker and a command use together. How many a pooler opens is
 * set in its own file; one is enough for it to work.
 */
function connectionsNeeded({ queueBackend, isPooled }: ServerUse): number {
  const processes = 3;
  const pools = isPooled ? 1 : processes * poolSizes.database + poolSizes.inbox;
  return queueBackend === "postgres" ? pools + processes * queuePoolSizes.producers + queuePoolSizes.worker : pools;
}

interface ServerUse {
  queueBackend: "postgres" | "redis";
  /** Through a pooler that lends connections by the transaction. */
  isPooled: boolean;
}

/** Checks that what needs a session reaches the database past the pooler, also where the queue needs none. */
export async function checkDirect(runtime: Pick<Runtime, "directUrl">): Promise<CheckResult> {
  await runtime.directUrl();
  return ok("pooler", "DATABASE_DIRECT_URL reaches the database of DATABASE_URL past the pooler");
}

/** Checks the role, and the server settings that harm this program, as its connections see them. One line each. */
export async function checkServer(runtime: Pick<Runtime, "db" | "config" | "secrets">): Promise<CheckResult[]> {
  const facts = await readServerFacts(await runtime.db());
  const needed = connectionsNeeded({
    queueBackend: runtime.config.queueBackend,
    isPooled: runtime.secrets.databaseDirectUrl !== null,
  });
  const troubles = findTroubles(facts, needed);
  const settings = (["durability", "server"] as const).flatMap((check) => {
    const own = troubles.filter((trouble) => trouble.check === check);
    if (own.length > 0) {
      return own.map(({ isFatal, says, remedy }) =>
        isFatal === true ? failed(check, says, remedy) : warning(check, says, remedy),
      );
    }
    return [
      check === "durability"
        ? ok(check, "what is committed survives a crash")
        : ok(check, `no setting does harm; ${facts.connections.limit} connections`),
    ];
  });
  return [...settings, examineRole(facts, runtime.config.database)];
}

/** The embedded server belongs to this program and holds only its data, so its role is not checked. */
function examineRole(
  { role, isSuperuser, mayWrite, database }: ServerFacts,
  kind: "embedded" | "external",
): CheckResult {
  const check = "database role";
  if (kind === "embedded") return skipped(check, "the embedded PostgreSQL is Tallyhook's own");
  if (!mayWrite) {
    return failed(
      check,
      `${role} may not write to the inbox, so no webhook can be stored`,
      "use the role in DATABASE_URL that owns the database and migrated it",
    );
  }
  if (!isSuperuser) return ok(check, `${role} is no superuser of PostgreSQL`);
  return warning(
    check,
    `${role} is a superuser of PostgreSQL: whoever takes over the receiver can read and change every database of the ` +
      "server, and run programs as the server's user",
    `make a role that is no superuser and owns a database of its own, dump ${database} and load it there as that ` +
      'role, and name both in DATABASE_URL (docs/operations.md, "Database role")',
  );
}

/** By name; a setting that the server's version lacks is not there. One statement. */
export async function readServerSettings(
  db: Knex,
  names: readonly string[],
): Promise<ReadonlyMap<string, ServerSetting>> {
  const { rows } = await db.raw<{ rows: ServerSetting[] }>(
    `select name, setting, unit, current_setting(name) as shown, enumvals as choices, source,
            context <> 'postmaster' as "isReloaded"
     from pg_settings where name = any(?::text[])`,
    [[...names]],
  );
  return new Map(rows.map((row) => [row.name, row]));
}

/** Takes two statements. */
async function readServerFacts(db: Knex): Promise<ServerFacts> {
  const settings = await readServerSettings(db, settingNames);
  const { rows: others } = await db.raw<{
    rows: {
      role: string;
      is_superuser: boolean;
      may_write: boolean;
      database: string;
      is_standby: boolean;
      of_server: number;
      of_database: number;
      of_role: number;
    }[];
  }>(
    `select current_user as role, current_database() as database, pg_is_in_recovery() as is_standby,
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
              - coalesce(current_setting('reserved_connections', true), '0')::int as of_server,
            (select datconnlimit from pg_database where datname = current_database()) as of_database,
            own.rolconnlimit as of_role, own.rolsuper as is_superuser,
            has_table_privilege('inbox.receipts', 'insert') as may_write
     from pg_roles own where own.rolname = current_user`,
  );
  const [other] = others;
  if (other === undefined) throw new Error("the server does not say what it is");
  const limits = [
    { limit: other.of_server, of: "the server (max_connections)" },
    { limit: other.of_database, of: `the database ${other.database}` },
    { limit: other.of_role, of: `the role ${other.role}` },
  ].filter(({ limit }) => limit >= 0);
  return {
    settings,
    role: other.role,
    isSuperuser: other.is_superuser,
    mayWrite: other.may_write,
    database: other.database,
    isStandby: other.is_standby,
    connections: limits.reduce((least, each) => (each.limit < least.limit ? each : least)),
  };
}

/** Each harmful setting, why it is harmful, and what to set. */
function findTroubles(facts: ServerFacts, connectionsNeeded: number): Trouble[] {
  const { settings } = facts;
  const valueOf = (name: string): string | undefined => settings.get(name)?.setting;
  const set = (name: string, value: string) => howToSet(facts, settings.get(name), name, value);
  const found: Trouble[] = [];
  const add = (check: Trouble["check"], says: string, remedy: string) => found.push({ check, says, remedy });

  if (valueOf("fsync") === "off") {
    add("durability", "fsync is off: a crash of the machine can destroy the database", set("fsync", "on"));
  }
  if (valueOf("full_page_writes") === "off") {
    add(
      "durability",
      "full_page_writes is off: a crash of the machine can leave half-written pages that nothing repairs",
      set("full_page_writes", "on"),
    );
  }
  if (valueOf("synchronous_commit") === "off") {
    add(
      "durability",
      "synchronous_commit is off: a crash loses the last commits, except acknowledged events",
      set("synchronous_commit", "on"),
    );
  }
  if (facts.isStandby) {
    const says = "the server is a standby: nothing can be written";
    found.push({
      check: "server",
      isFatal: true,
      says,
      remedy: "point DATABASE_URL at the primary",
    });
  } else if (valueOf("transaction_read_only") === "on") {
    found.push({
      check: "server",
      isFatal: true,
      says: "transactions are read-only: nothing can be written",
      remedy: set("default_transaction_read_only", "off"),
    });
  }
  if (facts.connections.limit < connectionsNeeded) {
    add(
      "server",
      `${facts.connections.of} allows ${facts.connections.limit} connections; a receiver, a worker and a command ` +
        `together take up to ${connectionsNeeded}, and whatever gets none fails`,
      `allow at least ${connectionsNeeded}, and as many again for each further receiver and worker`,
    );
  }
  for (const name of ["autovacuum", "track_counts"]) {
    if (valueOf(name) !== "off") continue;
    add(
      "server",
      `${name} is off: nothing vacuums the tables, so the inbox and the queue grow and become slower without end`,
      set(name, "on"),
    );
  }
  for (const name of ["statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout"]) {
    const ms = Number(valueOf(name) ?? 0);
    if (ms === 0 || ms >= shortestTimeoutMs) continue;
    add(
      "server",
      `${name} is ${ms} ms: imports, reconciliation and reports over a large mirror are cut off`,
      set(name, "0"),
    );
  }
  const buffersMb = Number(valueOf("shared_buffers") ?? Infinity) / 128; // pages of 8 kB
  if (buffersMb < leastSharedBuffersMb) {
    add(
      "server",
      `shared_buffers is ${Math.round(buffersMb * 10) / 10} MB: nearly every read misses the server's memory`,
      `${set("shared_buffers", "128MB")}; a quarter of the machine's memory is usual`,
    );
  }
  return found;
}

/** Names the place to change a setting, which depends on its source: a change in any other place has no effect. */
export function howToSet(
  { role, database }: Pick<ServerFacts, "role" | "database">,
  known: ServerSetting | undefined,
  name: string,
  value: string,
): string {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const apply = known?.isReloaded === false ? "restart the server" : "reload it (select pg_reload_conf())";
  switch (known?.source) {
    case "database":
      return `it is set for the database: alter database ${quoted(database)} set ${name} = ${value}`;
    case "user":
      return `it is set for the role: alter role ${quoted(role)} set ${name} = ${value}`;
    case "database user":
      return (
        `it is set for the role in this database: alter role ${quoted(role)} in database ${quoted(database)} set ` +
        `${name} = ${value}`
      );
    case "client":
      return (
        `it comes with the connection: set ${name} = ${value} in the options of DATABASE_URL ` +
        '(docs/operations.md, "Settings of a session")'
      );
    case "command line":
      return `it is set on the server's command line: set ${name} = ${value} there and restart the server`;
    default:
      return `set ${name} = ${value} in postgresql.conf, then ${apply}`;
  }
}
