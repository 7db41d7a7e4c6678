import type { ReconcileDeps } from "../../reconcile/reconcile.ts";
import type { ScheduledTask } from "../../worker/start-worker.ts";
import type { Finding } from "../cli/doctor/finding.ts";
import type { Config } from "../config/config.ts";
import type { Runtime } from "../runtime.ts";

/** What the program needs from its optional rooms. A deleted room is absent. */
export interface OptionalRooms {
  readonly sandbox?: SandboxRoom;
  readonly endpoint?: EndpointRoom;
  readonly reports?: ReportsRoom;
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
  /** Sends the webhooks to an address. Returns the secrets that the receiver does not have yet. */
  sendTo(webhookUrl: string): Promise<string[]>;
}

export interface EndpointRoom {
  /** The nightly check of this deployment's endpoint. */
  watch(runtime: Pick<Runtime, "config">): NonNullable<ReconcileDeps["watchEndpoint"]>;
  /** The endpoint's check of the doctor. */
  examine(runtime: Runtime, database: Finding): Promise<Finding>;
}

export interface ReportsRoom {
  /** Files whose functions and triggers `migrate` creates, in order. */
  readonly sql: readonly URL[];
  /** The files of the merchant's own reports. */
  readonly ownSql: readonly URL[];
  /** The report mails. */
  tasks(runtime: Runtime): Promise<Record<string, ScheduledTask>>;
  /** The proof's check of the doctor. */
  examine(runtime: Pick<Runtime, "db">): Promise<Finding>;
}
