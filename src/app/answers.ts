import type { Knex } from "knex";
import type { ServiceClient } from "../core/client/service-client.ts";
import type { Funnel, WeekOfDeclines } from "../core/mirror/dunning/funnel.ts";
import type { DunningSettings } from "../core/mirror/dunning/stages.ts";
import type { ObjectKey } from "../core/mirror/snapshot.ts";

/**
 * The questions that parts ask each other. At most one part answers each of them. A question is absent where its part
 * was deleted, and the caller decides how to continue without it.
 */
export interface Answers {
  // Reconciliation

  /** When the last run that answers for everything began; null where there was none. */
  lastFullAnswerStart?(db: Knex): Promise<Date | null>;
  /** Whether a worker takes orders, and whether a run ever answered for everything. */
  beginning?(db: Knex): Promise<{ hasWorker: boolean; hasRun: boolean }>;
  /** The findings on an object that are not healed. */
  findingsOfObject?(db: Knex, key: ObjectKey): Promise<ObjectFinding[]>;
  /** Reads every list of a service whose clock stands still, and heals. Throws the signal's reason. */
  healEverything?(
    service: ServiceLocation,
    options: { signal: AbortSignal; onProgress(progress: { rows: number }): void },
  ): Promise<{ healed: number; left: number; complete: boolean }>;

  // Reports

  /** The card networks' programmes whose threshold the month of `at` has reached to this share. */
  programmesNear?(
    db: Knex,
    question: { at: Date; timeZone: string; region: string; share: number },
  ): Promise<NearProgramme[]>;
  /** Counts of the events that were due for the service's changes between these times, and of those that came. */
  deliveriesBetween?(
    db: Knex,
    span: { from: Date; until: Date; timeZone: string },
  ): Promise<{ announced: number; received: number; inTime: number; missed: number }>;
  /** Outcomes of the renewals first declined in a month, such as `2026-11`. */
  funnelOfMonth?(db: Knex, question: { month: string; timeZone: string }): Promise<Funnel>;
  /** Outcomes of the renewals first declined in the weeks from these Mondays on, such as `2026-11-16`. */
  declinesByWeek?(db: Knex, question: { mondays: readonly string[]; timeZone: string }): Promise<WeekOfDeclines[]>;
  closedMonths?: ClosedMonths;

  // Alerts

  /** When a last retry counts as near, and after which attempt people contact the customer. Throws `ConfigurationError`. */
  dunningSettings?(): Promise<DunningSettings>;
  /** Call it before a transaction at repeatable read writes; its result returns the alerts that the transaction raised. */
  watchAlerts?(trx: Knex.Transaction): Promise<() => Promise<RaisedAlert[]>>;
  /** The alerts that a worker's transaction, which began at this time, raised for an event and its objects. */
  alertsAt?(db: Knex, at: Date, of: { ids: readonly string[]; eventId: string }): Promise<RaisedAlert[]>;

  // Delivery

  handlersHealth?(db: Knex, counted: { most: number }): Promise<HandlerHealth[]>;
  feedConsumers?(db: Knex): Promise<ConsumerLag[]>;
  /** The handler or destination behind a consumer of the feed; null for another reader. */
  handlerOf?(consumer: string): string | null;
  /** Processes and files of handlers that have been down for this long. */
  downHosts?(db: Knex, patience: { afterMinutes: number }): Promise<DownHost[]>;
  /** The destination behind a dispatch name; null for a handler. */
  destinationOf?(recipient: string): string | null;

  // The endpoint

  /** Problems of this deployment's endpoint; null where neither it nor its address is known. */
  endpointProblems?(tools: {
    db: Knex;
    client: Pick<ServiceClient, "listPages">;
  }): Promise<{ problems: EndpointProblem[]; date: Date } | null>;
  /** Records an endpoint that was created without the endpoint's commands. `secretId` is a stored secret. Idempotent. */
  rememberEndpoint?(db: Knex, endpoint: { id: string; url: string; secretId: string | null }): Promise<void>;
  forgetEndpoint?(db: Knex, id: string): Promise<void>;

  // The sandbox

  /** Starts the sandbox on its stored state; it ends with the runtime. */
  startSandbox?(): Promise<RunningSandbox>;
  /** Removes the stored state while no process uses it, after `removeRest` has removed what belongs to it. */
  resetSandbox?(removeRest: () => Promise<void>): Promise<void>;
}

/** The sandbox that `start` runs in its process. */
export interface RunningSandbox {
  readonly url: string;
  /** True if it has not sent an event yet. */
  readonly isNew: boolean;
  /** Sends the webhooks to an address, and records the endpoint. Returns the secrets that the receiver lacks. */
  sendTo(webhookUrl: string): Promise<string[]>;
}

/** The address of a service, and an API key for it. */
export interface ServiceLocation {
  baseUrl: string;
  apiKey: string;
}

export interface ObjectFinding {
  id: string;
  state: string;
  class: string;
  /** The name of a broken invariant. */
  identity: string | null;
  amount_at_risk_minor: string | null;
  currency: string | null;
}

export interface NearProgramme {
  brand: string;
  programme: string;
  disputes: number;
  /** The number of disputes at which the programme applies. */
  limit: number;
  /** Percent of settled sales; null where there are none. */
  ratio: number | null;
  /** Every threshold of the programme is reached; in some regions an amount is one of them. */
  isOver: boolean;
}

/** A rehearsed upgrade must leave these unchanged. */
export interface ClosedMonths {
  /** Every closed month with its seal, and its differences from the seal. */
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
}

/** Which columns were computed and the hash of the rows, or why that could not be, in half a sentence. */
export type RecomputedReport = { columns: readonly string[]; sha256: string } | { why: string };

/** An alert at a change in its history. */
export interface RaisedAlert {
  id: number;
  rule: string;
  severity: string;
  /** `opened`, `updated`, `resolved`, … */
  change: string;
  title: string | null;
  /** Channels that a message of it goes to; empty where it waits for a digest, or goes to none. */
  channels: string[];
}

/** The state of a handler or a destination, for its operator. */
export interface HandlerHealth {
  name: string;
  /** The source of its runs. */
  source: "changes" | "webhooks";
  pausedBy: "person" | "failures" | "subscriber" | null;
  pausedAt: Date | null;
  pauseReason: string | null;
  /** Changes that failed at their last attempt: of each object one at most. Counted up to `most`. */
  dead: number;
  /** The number of its postponements (`RetryLater`). */
  postponed: number;
  /** When the first of them failed for the last time. */
  deadSince: Date | null;
  oldestDead: DeadChange | null;
  /** All changes up to this number were read. */
  position: number;
  /**
   * When the oldest unread change was recorded, or the oldest unread event received; null where it has read everything
   * readable.
   */
  unreadSince: Date | null;
  /** When the first of its waiting changes was due, or will be; null where none waits. */
  nextDueAt: Date | null;
}

/** A dead change, and what waits behind it. */
export interface DeadChange {
  seq: number;
  kind: string;
  resource: string;
  id: string;
  /** The name of its last error. */
  error: string | null;
  /** Later changes of the same object, up to `most`. */
  holdsUp: number;
}

/** A named reader of the feed, for which the feed keeps unread changes. */
export interface ConsumerLag {
  name: string;
  /** All changes up to this number were handled. */
  position: number;
  /** When the position last moved, by the database's clock. */
  movedAt: Date;
  createdAt: Date;
  /** When the oldest change that it has not read was recorded; null where it has read all. */
  unreadSince: Date | null;
}

/** Files of handlers that do not run. */
export interface DownHost {
  files: string[];
  /** The other handlers run without them. */
  isApart: boolean;
  downSince: Date;
  /** The reason in the longest case. */
  reason: string;
  /** The number of workers, or programs that only run handlers, that report it. */
  supervisors: number;
}

export interface EndpointProblem {
  code:
    | "not_registered"
    | "registered_twice"
    | "other_address"
    | "disabled"
    | "not_subscribed"
    | "version_sunset"
    | "unknown_rotation"
    | "secret_lost"
    | "call_unfinished";
  severity: "critical" | "high" | "warning";
  /** The endpoint's id, or the address when there is no endpoint. */
  subject: string;
  says: string;
  remedy: string;
}
