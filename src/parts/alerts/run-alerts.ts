import type { AlertContext } from "./alert-context.ts";
import type { ChannelDeps } from "./channels/channel-kind.ts";
import { openChannels } from "./channels/channel-kinds.ts";
import type { Channel } from "./channels/channel.ts";
import { createDestinationGuard } from "../../platform/http/destination-guard.ts";
import { recordHeartbeat, removeHeartbeat, schedulerBeat } from "./heartbeats.ts";
import { startSender } from "./outbox/sender.ts";
import { type AlertSettings, loadAlertSettings } from "./settings.ts";
import { signatureScheme } from "../../core/contract/signature/signature-scheme.ts";
import { pruneAlerts } from "./retention.ts";
import { readFeedHealth } from "../../core/mirror/changes/feed-partitions.ts";
import { firstNumberOfPrevious, readPartitionHealth } from "../../core/inbox/partitions.ts";
import { databaseNow } from "../../platform/postgres/database-clock.ts";
import { type DiskSpace, readDiskSpace } from "../../platform/disk-space.ts";
import { runEvery } from "../../platform/run-every.ts";
import { readReceivers } from "../../core/receiver/heartbeats.ts";
import type { RunListener } from "../../app/run-listener.ts";
import type { ScheduledTask } from "../../core/worker/scheduled-tasks.ts";
import type { Config } from "../../app/config/config.ts";
import { hourly } from "../../app/hourly.ts";
import type { Runtime, WorkerRole } from "../../app/runtime.ts";
import {
  type TransactionLimits,
  inTransaction,
  limitTransaction,
  tryLock,
} from "../../platform/postgres/transactions.ts";
import { withIsolatedAlerts } from "./isolated-alerts.ts";
import { misdated } from "./rules/misdated.ts";
import { keepWatch, runWatch } from "./run-watch.ts";
import { assessRun } from "./rules/reconciliation.ts";
import type { Knex } from "knex";
import type { Log } from "../../platform/log.ts";
import { escalate } from "./escalation.ts";
import { reportNearLastRetries } from "./rules/declines.ts";
import { sendDigests } from "./rules/digests.ts";
import { type InboxQuestions, endDeadEvents, scanInbox } from "./rules/events.ts";
import { scanStates } from "./rules/unknown-values.ts";
import { type WatchQuestions, watches } from "./rules/watches.ts";
import { reportStorms } from "./storms/list-storms.ts";
import { learnUsualDeclines } from "./storms/storms.ts";
import { describeAgain } from "./undescribed.ts";

const loaded = new WeakMap<Config, AlertSettings>();

/** Read once for a runtime. Throws `ConfigurationError`. */
export function alertSettings({ config }: Pick<Runtime, "config">): AlertSettings {
  const known = loaded.get(config) ?? loadAlertSettings(config.alerts.settingsFile);
  loaded.set(config, known);
  return known;
}

/** The dependencies of raising alerts. Throws `ConfigurationError` for wrong settings. */
export const createAlertContext = (runtime: Pick<Runtime, "config" | "wallClock" | "serviceClock">): AlertContext => ({
  settings: alertSettings(runtime),
  timeZone: runtime.config.timeZone,
  networkRegion: runtime.config.networkRegion,
  dashboardUrl: runtime.config.dashboard.publicUrl,
  clock: runtime.wallClock,
  serviceClock: runtime.serviceClock,
});

/** Turns reports of worker and reconciliation into alerts. Throws `ConfigurationError` for wrong settings. */
export const createListener = (runtime: Runtime): RunListener => alertListener(createAlertContext(runtime));

/** All channels of this deployment. Connects to nothing. Throws `ConfigurationError`. */
export const openAlertChannels = (
  runtime: Parameters<typeof alertChannelDeps>[0],
  settings: AlertSettings,
): ReadonlyMap<string, Channel> => openChannels(settings.channels, alertChannelDeps(runtime, settings));

/** The dependencies of this deployment's channels. */
export function alertChannelDeps(
  { config, live, secrets, wallClock }: Pick<Runtime, "config" | "live" | "secrets" | "wallClock">,
  settings: AlertSettings,
): ChannelDeps {
  const { smtpUrl: url, alertSecrets } = secrets;
  const from = config.mailFrom;
  return {
    guard: createDestinationGuard(settings.destinations),
    clock: wallClock,
    secretOf: (variable) => alertSecrets[variable] ?? null,
    smtp: url === null || from === null ? null : { url, from },
    scheme: signatureScheme(config.signature.scheme),
    runbooksUrl: config.runbooksUrl,
    writeLine: (line) => void (live ?? process.stdout).write(line),
  };
}

/** Sends alerts until the runtime ends. */
export async function runAlertSender(runtime: Runtime): Promise<void> {
  const { log, random, wallClock: clock } = runtime;
  const channels = openAlertChannels(runtime, alertSettings(runtime));
  const sender = startSender({ db: await runtime.db(), log, clock, random }, channels);
  runtime.onClose(() => sender.close());
}

/** What a sweep asks of core. */
export const coreQuestions = {
  receivers: readReceivers,
  partitionsAt: readPartitionHealth,
  firstNumberOfPrevious,
  feedPartitions: readFeedHealth,
};

const defaultSweepEveryMs = 30_000;
const beatEveryMs = 60_000;

/** For the embedded database: the disk of another one is not visible here. */
const databaseDiskOf = async ({ config }: Pick<Runtime, "config">): Promise<DiskSpace | null> =>
  config.database === "embedded" ? readDiskSpace(config.dataDir) : null;

/**
 * Sweeps until the runtime ends, for alerts that no event causes, such as absences. Each worker has its own timer, as
 * for the relay, because a scheduler that has stopped is one of the things a sweep detects.
 */
export async function runAlertWatch(
  runtime: Runtime,
  { sweepEveryMs = defaultSweepEveryMs, databaseDisk = () => databaseDiskOf(runtime) }: WorkerRole = {},
): Promise<void> {
  const { log } = runtime;
  const db = await runtime.db();
  const alertContext = createAlertContext(runtime);
  const questions = { ...coreQuestions, ...runtime.ask, databaseDisk };
  const name = `worker:${process.pid}:${crypto.randomUUID()}`;
  const watch = runEvery({ log, name: "alerts" }, sweepEveryMs, async () => {
    await recordHeartbeat(db, name);
    return sweepAlerts({ db, log, ...questions }, alertContext);
  });
  runtime.onClose(async () => {
    await watch.close();
    await removeHeartbeat(db, name);
  });
}

/** The scheduler's heartbeat, by which the sweep knows that it runs, and what removes old alerts and messages. */
export async function alertTasks(
  runtime: Runtime,
  readNow: typeof databaseNow = databaseNow,
): Promise<Record<string, ScheduledTask>> {
  const { log, serviceClock } = runtime;
  const db = await runtime.db();
  const settings = alertSettings(runtime);
  return {
    "scheduler-beat": {
      schedule: { everyMs: beatEveryMs },
      run: () => recordHeartbeat(db, schedulerBeat),
    },
    "alerts-retention": hourly(async (stopping) => {
      const [now, serviceNow] = [await readNow(db), serviceClock.now()];
      const removed = await pruneAlerts(db, { now, serviceNow, settings, stopping });
      log.info({ removed }, "old alerts and messages are removed");
    }),
  };
}

/** Turns reports of worker and reconciliation into alerts. */
export const alertListener = (alertContext: AlertContext): RunListener => ({
  tellWithin: (log, transaction) => withIsolatedAlerts(log, alertContext, transaction),
  runEnded: (deps, run) => assessRun(deps, alertContext, run),
  async healedByHand({ db, log }, { resource, id }) {
    try {
      await inTransaction(db, (trx) => runWatch(trx, alertContext, misdated));
    } catch (err) {
      log.warn({ err, resource, id }, "an object was healed, and its alert could not be ended");
    }
  },
});

/** The lock of the active sweep, held for each of its transactions. An arbitrary fixed number. */
const sweepLock = 7_255_011_936;

/** A sweep's readings from core and other parts, which are passed in. */
export type SweepQuestions = InboxQuestions & WatchQuestions;

type Part = (
  trx: Knex.Transaction,
  alertContext: AlertContext,
  questions: SweepQuestions,
) => Promise<{ more: boolean } | void>;

const parts: Readonly<Record<string, Part>> = {
  scanInbox,
  scanStates,
  describeAgain,
  keepWatch,
  ...Object.fromEntries(
    watches.map((watch): [string, Part] => [
      watch.rule,
      (trx, alertContext, questions) => runWatch(trx, alertContext, watch, questions),
    ]),
  ),
  endDeadEvents,
  reportNearLastRetries,
  reportStorms,
  learnUsualDeclines,
  sendDigests,
  escalate,
  forgetWorkers,
};

/** A process that is stopped in a part of its sweep leaves the turn to the others after it. */
const partLimits: TransactionLimits = { statementMs: 60_000, lockMs: null, transactionMs: 120_000 };

/**
 * Runs everything that time alone makes due: absences, near retries, digests, escalation, the lists and ends of storms.
 * Each has its own transaction, so that one that fails does not delay the others. Does nothing while another worker
 * sweeps. Idempotent. Returns whether there is more to do immediately.
 */
export async function sweepAlerts(
  { db, log, ...questions }: { db: Knex; log: Log } & SweepQuestions,
  alertContext: AlertContext,
  limits: TransactionLimits = partLimits,
): Promise<{ more: boolean }> {
  let more = false;
  for (const [part, run] of Object.entries(parts)) {
    try {
      const result = await db.transaction(async (trx) => {
        await limitTransaction(trx, limits);
        const isOurs = await tryLock(trx, sweepLock);
        return isOurs ? await run(trx, alertContext, questions) : undefined;
      });
      more ||= result?.more === true;
    } catch (err) {
      log.error({ err, part }, "a part of the alerts' sweep failed");
    }
  }
  return { more };
}

/** Deletes the heartbeats of workers that were missed for an hour. */
async function forgetWorkers(trx: Knex.Transaction): Promise<void> {
  await trx("alerts.heartbeats")
    .whereRaw("starts_with(name, 'worker') and beat_at < now() - interval '1 hour'")
    .delete();
}
