import type { ReconcileDeps } from "../../reconcile/reconcile.ts";
import type { ScheduledTask } from "../../worker/start-worker.ts";
import type { Finding } from "../cli/doctor/finding.ts";
import type { Config } from "../config/config.ts";
import type { Runtime } from "../runtime.ts";

/** What the program asks of the rooms that it can do without. One that is not there is asked nothing. */
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
  /** It has sent no event yet. */
  readonly isNew: boolean;
  /** Has the webhooks sent to an address. Gives back the secrets that the receiver does not have yet. */
  sendTo(webhookUrl: string): Promise<string[]>;
}

export interface EndpointRoom {
  /** The nightly look at this deployment's endpoint. */
  watch(runtime: Pick<Runtime, "config">): NonNullable<ReconcileDeps["watchEndpoint"]>;
  /** What the doctor says of it. */
  examine(runtime: Runtime, database: Finding): Promise<Finding>;
}

export interface ReportsRoom {
  /** Files whose functions and triggers `migrate` makes, in their order. */
  readonly sql: readonly URL[];
  /** The merchant's own. */
  readonly ownSql: readonly URL[];
  /** The mails with reports. */
  tasks(runtime: Runtime): Promise<Record<string, ScheduledTask>>;
  /** What the doctor says of the proof. */
  examine(runtime: Pick<Runtime, "db">): Promise<Finding>;
}
