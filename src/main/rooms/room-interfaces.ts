import type { Knex } from "knex";
import type { DunningSettings } from "../../core/mirror/dunning/stages.ts";
import type { Funnel } from "../../core/mirror/dunning/funnel.ts";
import type { HandlerHealth } from "../../parts/delivery/dispatch/handler-health.ts";
import type { DownHost } from "../../parts/delivery/dispatch/handler-hosts.ts";
import type { ReconcileDeps } from "../../parts/reconcile/reconcile.ts";
import type { RunListener } from "../../parts/reconcile/run-listener.ts";
import type { ScheduledTask } from "../../core/worker/scheduled-tasks.ts";
import type { CheckResult } from "../../app/check-result.ts";
import type { Config } from "../../app/config/config.ts";
import type { DiskSpace } from "../../platform/disk-space.ts";
import type { Runtime } from "../../app/runtime.ts";

/** What the program needs from its optional rooms. A deleted room is absent. */
export interface OptionalRooms {
  readonly sandbox?: SandboxRoom;
  readonly endpoint?: EndpointRoom;
  readonly reports?: ReportsRoom;
  readonly alerts?: AlertsRoom;
  readonly handlers?: HandlersRoom;
  readonly forward?: ForwardRoom;
}

export interface SandboxRoom {
  /** Starts the sandbox on its stored state; it ends with the runtime. */
  start(runtime: Runtime): Promise<RunningSandbox>;
  /** Removes the stored state while nobody uses it, after `removeRest` has removed what belongs to it. */
  reset(config: Config, removeRest: () => Promise<void>): Promise<void>;
}

export interface RunningSandbox {
  readonly url: string;
  /** True if it has not sent an event yet. */
  readonly isNew: boolean;
  /** Sends the webhooks to an address, and notes the endpoint. Returns the secrets that the receiver does not have yet. */
  sendTo(webhookUrl: string, endpoint?: EndpointNotes): Promise<string[]>;
}

/** Of endpoints that were made without the endpoint's commands. Idempotent. */
export interface EndpointNotes {
  /** `secretId`: of a stored secret. */
  remember(db: Knex, endpoint: { id: string; url: string; secretId: string | null }): Promise<void>;
  forget(db: Knex, id: string): Promise<void>;
}

export interface EndpointRoom extends EndpointNotes {
  /** The nightly check of this deployment's endpoint. */
  watch(runtime: Pick<Runtime, "config">): NonNullable<ReconcileDeps["checkEndpoint"]>;
  /** The endpoint's check of the doctor. */
  check(runtime: Runtime, database: CheckResult): Promise<CheckResult>;
}

/** The standby that reports are read from. */
export interface Standby {
  /** Throws `UnreachableError` where it does not answer. */
  connect(): Promise<Knex>;
  /** Throws `UnreachableError` while it lacks what `migrate` made on the primary. */
  assertMigrated(db: Knex): Promise<void>;
  maxLagSeconds: number;
}

export interface ReportsRoom {
  /** Files whose functions and triggers `migrate` creates, in order. */
  readonly sql: readonly URL[];
  /** The files of the merchant's own reports. */
  readonly ownSql: readonly URL[];
  /** The report mails. */
  tasks(runtime: Runtime, standby: Standby | null): Promise<Record<string, ScheduledTask>>;
  /** What alerts ask the reports. */
  readonly questions: {
    programmesNear(
      db: Knex,
      question: { at: Date; timeZone: string; region: string; share: number },
    ): Promise<
      {
        brand: string;
        programme: string;
        disputes: number;
        limit: number;
        ratio: number | null;
        isOver: boolean;
      }[]
    >;
    /** Of what changed at the service between these times, how much it had to announce and what of it came. */
    deliveriesBetween(
      db: Knex,
      span: { from: Date; until: Date; timeZone: string },
    ): Promise<{ announced: number; received: number; inTime: number; missed: number }>;
  };
  /** What became of the renewals first declined in a month, such as `2026-11`. */
  funnelOfMonth(db: Knex, question: { month: string; timeZone: string }): Promise<Funnel>;
  /** The proof's check of the doctor. */
  check(runtime: Pick<Runtime, "db">): Promise<CheckResult>;
  /**
   * Takes the reasons of prepared months out that name a person. Returns how many, and the closed months whose sealed
   * reason names the person.
   */
  eraseReasons(
    trx: Knex.Transaction,
    named: (text: string) => boolean,
  ): Promise<{ redacted: number; sealed: string[] }>;
  /** Takes mails for sent that the system sent which this database was restored in place of. Needs a transaction. */
  presumeMailed(trx: Knex.Transaction, runtime: Pick<Runtime, "config">, ranUntil: Date): Promise<void>;
  /** What a rehearsed upgrade must leave as it was. */
  readonly closes: {
    /** Every closed month with its seal, and what is not as it was sealed. */
    verify(db: Knex): Promise<{
      closes: { month: string; snapshot: string; sha256: string; problems: string[] }[];
      problems: string[];
    }>;
    /**
     * The reports of the last closed months, computed again; by month and report. After an upgrade, of the columns that
     * were computed before it.
     */
    recompute(
      db: Knex,
      months: number,
      before?: ReadonlyMap<string, RecomputedReport>,
    ): Promise<ReadonlyMap<string, RecomputedReport>>;
  };
  /** The doctor's check of the standby that reports are read from. */
  checkStandby(runtime: Pick<Runtime, "db">, standby: Standby): Promise<CheckResult>;
}

/** Which columns were computed and the hash of the rows, or why that could not be, in half a sentence. */
export type RecomputedReport = { columns: readonly string[]; sha256: string } | { why: string };

/** A person as alerts know them: by objects, events, and the names that texts use. */
interface PersonInAlerts {
  customerId: string;
  ids: readonly string[];
  seqs: readonly number[];
  names: readonly string[];
}

/** What a game day does otherwise than a worker as a rule. */
export interface AlertWatch {
  /** Between two sweeps. */
  everyMs?: number;
  /** The disk that holds the database; null where nobody can tell. */
  databaseDisk?: () => Promise<DiskSpace | null>;
}

export interface AlertsRoom {
  /** Who is told of changes and runs. Throws `ConfigurationError` for wrong settings. */
  listener(runtime: Runtime): Promise<RunListener>;
  /** Sends messages until the runtime ends. Throws `ConfigurationError` for wrong settings. */
  send(runtime: Runtime): Promise<void>;
  /** Looks for absences and all else that time makes due, until the runtime ends. */
  watch(
    runtime: Runtime,
    ofRooms: Partial<ReportsRoom["questions"] & ForwardRoom["questions"]>,
    options?: AlertWatch,
  ): Promise<void>;
  /** The scheduler's heartbeat, and what removes old alerts. */
  tasks(runtime: Runtime): Promise<Record<string, ScheduledTask>>;
  /**
   * Redacts what alerts and messages say of a person: of these objects and events, and by these names. Returns what
   * changed, by kind.
   */
  redact(trx: Knex.Transaction, person: PersonInAlerts): Promise<Record<string, number>>;
  /** When a last retry is near, and from when on somebody writes to the customer. */
  dunning(runtime: Pick<Runtime, "config">): Promise<DunningSettings>;
  /**
   * Takes for told what the system has told that this database was restored in place of. Needs a transaction. Throws
   * `ConfigurationError` for wrong settings.
   */
  presumeSent(
    trx: Knex.Transaction,
    runtime: Pick<Runtime, "config">,
    ranUntil: Date,
  ): Promise<{ messages: number; digestItems: number }>;
  /** The alerts about a person: what people wrote on them goes with an erasure. */
  about(trx: Knex.Transaction, person: PersonInAlerts): Promise<string[]>;
  /** What people are told of an event. */
  readonly told: {
    /** Called before a transaction at repeatable read writes, it returns what to call for what it told. */
    watch(trx: Knex.Transaction): Promise<() => Promise<ToldAlert[]>>;
    /** What a worker's transaction that began at this time told of an event and its objects. */
    at(db: Knex, at: Date, of: { ids: readonly string[]; eventId: string }): Promise<ToldAlert[]>;
  };
  /** What metrics show of alerts: a statement or two by indexes. Throws `ConfigurationError` for wrong settings. */
  metrics(
    db: Knex,
    runtime: Pick<Runtime, "config">,
    limits: { most: number; channelsAtMost: number },
  ): Promise<{
    unresolved: { severity: string; n: number }[];
    /** By channel of the settings: for how long its oldest due message has been due. */
    outbox: { channel: string; ageSeconds: number }[];
  }>;
  /** The doctor's checks of worker and scheduler, by their heartbeats. */
  examineWork(runtime: Pick<Runtime, "db">): Promise<CheckResult[]>;
  /** The doctor's checks of settings, channels and messages. */
  check(runtime: Runtime, database: CheckResult): Promise<CheckResult[]>;
}

interface ToldAlert {
  id: number;
  rule: string;
  severity: string;
  /** `opened`, `updated`, `resolved`, … */
  change: string;
  title: string | null;
  /** Channels that a message of it goes to. */
  channels: string[];
}

export interface HandlersRoom {
  /**
   * Runs the merchant's handlers until the runtime ends, in a process of their own; nothing where there are none. Does
   * not wait until they are loaded. Throws `ConfigurationError` for a folder that cannot be read.
   */
  run(runtime: Runtime, service?: { baseUrl: string; apiKey: string }): Promise<void>;
  /** The doctor's check of what runs them. */
  check(runtime: Runtime): Promise<CheckResult>;
  readonly questions: DispatchQuestions & {
    /** Their processes and files that have been down for so long. */
    downHosts(db: Knex, patience: { afterMinutes: number }): Promise<DownHost[]>;
  };
}

/** What is asked of all handlers and destinations that ever ran here. */
export interface DispatchQuestions {
  handlersHealth(db: Knex, counted: { most: number }): Promise<HandlerHealth[]>;
  /** Which of them a consumer of the feed is; null for a reader of another kind. */
  handlerOf(consumer: string): string | null;
}

export interface ForwardRoom {
  /**
   * Sends to the destinations of the settings until the runtime ends; nothing without settings. Throws
   * `ConfigurationError` for wrong ones.
   */
  run(runtime: Runtime): Promise<void>;
  /** The doctor's checks of settings and destinations. Sends nothing. */
  check(runtime: Runtime): Promise<CheckResult[]>;
  readonly questions: DispatchQuestions & {
    /** Which destination it is that the dispatch knows by this name; null for a handler. */
    destinationOf(recipient: string): string | null;
  };
}

export interface DashboardRoom {
  /**
   * Serves the dashboard until the runtime ends. Returns a link that signs the owner of this machine in once. Throws
   * `ConfigurationError` when it cannot listen.
   */
  start(runtime: Runtime, role: DashboardStart): Promise<{ signInLink: string }>;
}

export interface DashboardStart {
  /** Where pages ask for objects; absent: as the settings say. */
  service?: { baseUrl: string; apiKey: string };
  /** Told of each request that was answered. */
  onAnswered(request: { method: string; route: string; status: number; seconds: number }): void;
}
