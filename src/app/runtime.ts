import type { Knex } from "knex";
import type { Pool } from "pg";
import type { ServiceClient } from "../core/client/service-client.ts";
import type { JobQueue } from "../core/queue/job-queue.ts";
import type { ScheduledTask } from "../core/worker/scheduled-tasks.ts";
import type { Clock, ServiceClock } from "../platform/clock.ts";
import type { DiskSpace } from "../platform/disk-space.ts";
import type { Encryption } from "../platform/encryption.ts";
import type { Log } from "../platform/log.ts";
import type { PoolUse } from "../platform/postgres/pool.ts";
import type { Random } from "../platform/random.ts";
import type { Answers, ServiceLocation } from "./answers.ts";
import type { LiveScreen } from "./cli/live-screen.ts";
import type { CheckResult } from "./check-result.ts";
import type { Config, LoadedConfig, Secrets } from "./config/config.ts";
import type { PageGroup } from "./dashboard/page-group.ts";
import type { MetricReading } from "./metrics/metric.ts";
import type { CaseKind } from "./people/cases.ts";
import type { DatabaseRights } from "./rights.ts";
import { type RunListener, nobodyListens } from "./run-listener.ts";

/** The dependencies of commands. Each is created once, when it is first needed; slow modules are loaded then. */
export interface Runtime {
  readonly config: Config;
  readonly secrets: Secrets;
  /** Every setting, as people may see it. */
  readonly settings: LoadedConfig["settings"];
  readonly log: Log;
  /** The terminal that shows what the process does; null where its output is read by a program. */
  readonly live: LiveScreen | null;
  readonly wallClock: Clock;
  readonly serviceClock: ServiceClock;
  readonly random: Random;
  /** The parts of this program, the base first. */
  readonly parts: readonly WorkingPart[];
  /** What a part may ask of the others. */
  readonly ask: Answers;
  /** Starts the embedded server, or checks that the configured one answers. Throws `UnreachableError`. */
  databaseUrl(): Promise<string>;
  /**
   * The URL past a pooler, for work that needs a session of its own; where there is none, `databaseUrl`. Checks that it
   * reaches the same database, and throws as `databaseUrl` does.
   */
  directUrl(): Promise<string>;
  db(): Promise<Knex>;
  /**
   * The server of REPORTS_DATABASE_URL, which must be set. Checks at every call that it answers. Throws
   * `UnreachableError`.
   */
  reportsStandby(): Promise<Knex>;
  /** Every pool that was opened, at this moment. */
  poolUse(): readonly { name: string; use: PoolUse }[];
  /** Makes `poolUse` report a further pool. */
  watchPool(name: string, use: () => PoolUse): void;
  /** The inbox's own pool, so that a hung connection of it does not block other work. */
  inboxPool(): Promise<Pool>;
  /** Throws `ConfigurationError` where it is in a database that has no tables for it. */
  queue(): Promise<JobQueue>;
  encryption(): Promise<Encryption>;
  /** One client for each location: its callers share one rate, and refetches for events go before list reads. */
  serviceClient(location?: ServiceLocation): ServiceClient;
  /** Registers something that must be closed before everything created earlier. */
  onClose(close: () => Promise<void>): void;
  /** Closes everything in the reverse order of creation. Idempotent. */
  close(): Promise<void>;
}

/**
 * A part as the running program knows it. Roles, backup, doctor, metrics, schedules, erasure, restore and navigation are
 * derived from these members. Heavy modules are loaded when a member is called, so that a process loads only the heads
 * of the parts.
 */
export interface WorkingPart {
  /** Its word in `main/parts.ts`, and the name of its folder or, below `delivery`, of what it does. */
  readonly name: string;
  /** Its tables with the rights of each database role; absent where it has none. */
  readonly rights?: DatabaseRights;
  /** Files of functions, views and triggers in order of creation; each may use those of the base and of its own. */
  sql?(): Promise<SqlFiles>;
  /** The questions of other parts that it answers. It uses `runtime` only when one is asked. */
  answers?(runtime: Runtime): Answers;
  /** Receives the changes that worker and reconciliation write. At most one part has it. Throws `ConfigurationError`. */
  listener?(runtime: Runtime): Promise<RunListener>;
  /** The scheduled tasks of a worker. Throws `ConfigurationError`. */
  tasks?(runtime: Runtime, role: WorkerRole): Promise<Record<string, ScheduledTask>>;
  /** Starts further work in a worker, which ends with the runtime. Throws `ConfigurationError`. */
  work?(runtime: Runtime, role: WorkerRole): Promise<void>;
  /** Its pages. `service`: the service that they read objects from; absent: the configured one. */
  pages?(runtime: Runtime, service?: ServiceLocation): Promise<readonly PageGroup[]>;
  /** The doctor's checks of it. */
  readonly checks?: readonly PartCheck[];
  /** The metrics that are read from its tables. */
  readonly metrics?: readonly MetricReading[];
  /** Redacts a person in its tables. In the erasure's transaction, after mirror and feed; idempotent. */
  erase?(trx: Knex.Transaction, person: ErasedPerson): Promise<ErasedByPart>;
  /**
   * After a restore: marks work as done that the lost system did until it stopped. Needs the transaction; idempotent.
   * Throws `ConfigurationError`.
   */
  settle?(trx: Knex.Transaction, runtime: Runtime, ranUntil: Date): Promise<SettledByPart>;
}

export interface SqlFiles {
  program: readonly URL[];
  /** The merchant's own. */
  own?: readonly URL[];
}

/** A check of the doctor. One that needs the database is skipped, by its names, while that is not ready. */
export interface PartCheck {
  names: readonly string[];
  needsDatabase: boolean;
  examine(runtime: Runtime, database: CheckResult): Promise<CheckResult[]>;
}

/** A person as an erasure knows them: by objects, events, and the names that texts use. */
export interface ErasedPerson {
  customerId: string;
  ids: readonly string[];
  /** Numbers of stored events about the customer. */
  seqs: readonly number[];
  /** Order numbers, addresses, names. */
  names: readonly string[];
  /** True of a text that names the person. */
  named(text: string): boolean;
}

export interface ErasedByPart {
  /** Redacted rows, by kind. */
  counts?: Record<string, number>;
  /** The number of texts by people that named the person, and were redacted. */
  reasons?: number;
  /** Subjects that are about the person: notes on them are removed. */
  subjects?: readonly { kind: CaseKind; ids: readonly string[] }[];
  /** Closed months whose sealed reason names the person. */
  sealed?: readonly string[];
}

/** A part's report to the person who restores. */
export interface SettledByPart {
  /** Messages that were due, and were marked as sent. */
  messages?: number;
  digestItems?: number;
  recipients?: readonly HeldRecipient[];
}

/** A handler or destination of a restored database. */
export interface HeldRecipient {
  name: string;
  /** Changes that waited at the moment of the backup. They are dead now: retried or skipped by a person. */
  held: number;
}

/** How a worker differs from a deployment's, in a demo, a game day or a test. */
export interface WorkerRole {
  /** The service to read from. Default: the configured one. */
  service?: ServiceLocation;
  /** The least time between two "not found" answers that together mean that a customer was deleted. */
  missingGraceMs?: number;
  /** Names of parts whose tasks and work do not run. Their listeners still receive changes. */
  without?: readonly string[];
  /** Between two sweeps of the alerts. */
  sweepEveryMs?: number;
  /** The disk that holds the database; null where it is unknown. */
  databaseDisk?: () => Promise<DiskSpace | null>;
}

/** The listener of the part that has one. Throws `ConfigurationError` for wrong settings of alerts. */
export async function listenerOf(runtime: Runtime): Promise<RunListener> {
  const [part] = runtime.parts.filter(({ listener }) => listener !== undefined);
  return (await part?.listener?.(runtime)) ?? nobodyListens;
}
