import { ownWatches } from "../own/own-watches.ts";
import { absentReceiver } from "./absent-receiver.ts";
import { chargebackRatio } from "./chargeback-ratio.ts";
import { diskSpace } from "./disk-space.ts";
import { feedConsumerBehind } from "./feed-consumers.ts";
import { handlerHostDown, handlerQuarantined } from "./handler-hosts.ts";
import { handlerBehind, handlerDead, handlerPaused } from "./handlers.ts";
import { misdated } from "./misdated.ts";
import { missingEvents } from "./missing-events.ts";
import { missingRuns } from "./missing-runs.ts";
import { missingWorkers } from "./missing-workers.ts";
import { overdueBackup } from "./overdue-backup.ts";
import { overdueRenewals, overdueRetries } from "./overdue-charges.ts";
import { inboxPartitions } from "./partitions.ts";
import { signatureFailures } from "./signatures.ts";

/** No later version has a rule of such a name. */
type OwnRule = `own_${string}`;

/** Every alert condition that the sweep looks for, in this order. */
export const watches = [
  overdueRetries,
  overdueRenewals,
  missingEvents,
  absentReceiver,
  overdueBackup,
  missingWorkers,
  missingRuns,
  signatureFailures,
  inboxPartitions,
  diskSpace,
  feedConsumerBehind,
  handlerDead,
  handlerPaused,
  handlerBehind,
  handlerHostDown,
  handlerQuarantined,
  misdated,
  chargebackRatio,
  ...(ownWatches satisfies readonly { rule: OwnRule }[]),
];

type AnyWatch = (typeof watches)[number];

/** The settings of their rules. */
export const watchSettings = Object.fromEntries(watches.map(({ rule, schema }) => [rule, schema])) as {
  [Each in AnyWatch as Each["rule"]]: Each["schema"];
};

/** A value of all of these types together. */
type All<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer Every) => void
  ? Every
  : never;

/**
 * The readings that they take from the service's other parts and the machine, each through a function that is passed to
 * the sweep.
 */
export type WatchQuestions = All<Parameters<AnyWatch["poll"]>[2]>;
