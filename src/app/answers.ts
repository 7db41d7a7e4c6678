import type { Knex } from "knex";
import type { ServiceClient } from "../core/client/service-client.ts";
import type { Funnel } from "../core/mirror/dunning/funnel.ts";
import type { DunningSettings } from "../core/mirror/dunning/stages.ts";
import type { ObjectKey } from "../core/mirror/snapshot.ts";

/**
 * What a part may ask of the others. Each question is answered by one part at most, and absent where that part was
 * deleted: whoever asks says what follows then.
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

  /** The programmes of the card networks of whose threshold the month of `at` has reached this share. */
  programmesNear?(
    db: Knex,
    question: { at: Date; timeZone: string; region: string; share: number },
  ): Promise<NearProgramme[]>;
  /** How many of the service's changes between these times had to be announced, and what of it came. */
  deliveriesBetween?(
    db: Knex,
    span: { from: Date; until: Date; timeZone: string },
  ): Promise<{ announced: number; received: number; inTime: number; missed: number }>;
  /** Outcomes of the renewals first declined in a month, such as `2026-11`. */
  funnelOfMonth?(db: Knex, question: { month: string; timeZone: string }): Promise<Funnel>;
  closedMonths?: ClosedMonths;

  // Alerts

  /** When a last retry is near, and from when on a person writes to the customer. Throws `ConfigurationError`. */
  dunningSettings?(): Promise<DunningSettings>;
  /** Called before a transaction at repeatable read writes, it returns what to call for the alerts that it raised. */
  watchAlerts?(trx: Knex.Transaction): Promise<() => Promise<RaisedAlert[]>>;
  /** The alerts that a worker's transaction, which began at this time, raised for an event and its objects. */
  alertsAt?(db: Knex, at: Date, of: { ids: readonly string[]; eventId: string }): Promise<RaisedAlert[]>;

  // Delivery

  handlersHealth?(db: Knex, counted: { most: number }): Promise<HandlerHealth[]>;
  feedConsumers?(db: Knex): Promise<ConsumerLag[]>;
  /** Which handler or destination a consumer of the feed is; null for a reader of another kind. */
  handlerOf?(consumer: string): string | null;
  /** Processes of handlers, and files of them, that have been down for so long. */
  downHosts?(db: Knex, patience: { afterMinutes: number }): Promise<DownHost[]>;
  /** Which destination it is that the dispatch knows by this name; null for a handler. */
  destinationOf?(recipient: string): string | null;

  // The endpoint

  /** What is wrong with this deployment's endpoint; null where neither it nor its address is known. */
  endpointProblems?(tools: {
    db: Knex;
    client: Pick<ServiceClient, "listPages">;
  }): Promise<{ problems: EndpointProblem[]; date: Date } | null>;
  /** Notes an endpoint that was made without the endpoint's commands. `secretId`: of a stored secret. Idempotent. */
  rememberEndpoint?(db: Knex, endpoint: { id: string; url: string; secretId: string | null }): Promise<void>;
  forgetEndpoint?(db: Knex, id: string): Promise<void>;

  // The sandbox

  /** Starts the sandbox on its stored state; it ends with the runtime. */
  startSandbox?(): Promise<RunningSandbox>;
  /** Removes the stored state while no process uses it, after `removeRest` has removed what belongs to it. */
  resetSandbox?(removeRest: () => Promise<void>): Promise<void>;
}

/** The sandbox that `start` runs beside the rest. */
export interface RunningSandbox {
  readonly url: string;
  /** True if it has not sent an event yet. */
  readonly isNew: boolean;
  /** Sends the webhooks to an address, and notes the endpoint. Returns the secrets that the receiver does not have yet. */
  sendTo(webhookUrl: string): Promise<string[]>;
}

/** Where a service is, and the key that it knows. */
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
  limit: number;
  ratio: number | null;
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

/** How a handler or a destination does, for its operator. */
export interface HandlerHealth {
  name: string;
  /** What it is given. */
  source: "changes" | "webhooks";
  pausedBy: "person" | "failures" | "subscriber" | null;
  pausedAt: Date | null;
  pauseReason: string | null;
  /** Changes that failed at their last attempt: of each object one at most. Counted up to `most`. */
  dead: number;
  /** How often it has asked for another time (`RetryLater`). */
  postponed: number;
  /** When the first of them failed for the last time. */
  deadSince: Date | null;
  oldestDead: DeadChange | null;
  /** All changes up to it were looked at. */
  position: number;
  /**
   * When the oldest change that it has not looked at was recorded, or the oldest such event was received; null where it
   * has looked at all that it can.
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

/** A reader that the feed knows by name, and for which it keeps what is unread. */
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
  /** Why, where it has been so for longest. */
  reason: string;
  /** How many workers, or programs that run handlers alone, say so. */
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
