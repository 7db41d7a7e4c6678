import type { Knex } from "knex";
import { listConsumers } from "../../parts/delivery/consumers.ts";
import { readBacklog } from "../../core/inbox/backlog.ts";
import { sumUnpaidRenewals } from "../../core/mirror/dunning/renewals.ts";
import { type KeptReading, createKeptReading } from "../../platform/metrics/kept-reading.ts";
import type { Metric, Metrics, Sample } from "../../platform/metrics/registry.ts";
import { currencyDigits } from "../../platform/money.ts";
import { createDatabase } from "../../platform/postgres/pool.ts";
import { readBackups, unsavedMs } from "../../core/mirror/backups.ts";
import { readReceivers } from "../../core/receiver/heartbeats.ts";
import { listProofs } from "../../parts/reconcile/coverage/proof.ts";
import { countOpenFindings } from "../../parts/reconcile/findings/search-findings.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { Runtime } from "../../app/runtime.ts";
import { catalogue, countedTo, namesAtMost } from "./catalogue.ts";

/** A scrape every 15 s reads once, however many scrapers there are. */
const limits = { freshMs: 15_000, waitMs: 4_000, retryMs: 5_000 };
/** Of one statement. PostgreSQL ends it, so that a slow one does not go on beside the next. */
const statementTimeoutMs = 3_000;
/** Longer than a statement may take: then its connection is dead, and the next one opens another. */
const receiveTimeoutMs = 3_500;

type Part = (typeof catalogue.readSuccess.labels.part)[number];

/**
 * Of one connection: a pool without a free one is seen and not waited for. It ends with the runtime.
 */
export async function openMetricsDatabase(runtime: Runtime): Promise<Knex> {
  const { log, secrets } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax: 1,
    statementTimeoutMs,
    receiveTimeoutMs,
    applicationName: "tallyhook metrics",
    log,
  });
  runtime.onClose(() => db.destroy());
  return db;
}

/**
 * Adds what is read from database and queue: each part is read by itself, so that one that fails takes no other with it.
 */
export async function addDatabaseMetrics(
  metrics: Metrics,
  runtime: Pick<Runtime, "config" | "log" | "wallClock" | "serviceClock" | "queue">,
  db: Knex,
): Promise<void> {
  const { log, wallClock: clock, serviceClock } = runtime;
  const queue = await runtime.queue();
  const readings = new Map<Part, KeptReading<unknown>>();

  /** Adds metrics that one reading gives. */
  function part<T>(
    name: Part,
    read: () => Promise<T>,
    of: readonly (readonly [Metric, (found: T) => readonly Sample[]])[],
  ): void {
    const reading = createKeptReading({ log, clock, name }, limits, read);
    readings.set(name, reading);
    for (const [metric, samples] of of) {
      metrics.read(metric, async () => {
        const found = await reading.current();
        return found === null ? [] : samples(found);
      });
    }
  }

  part("inbox", () => readBacklog(db, { countedTo }), [
    [
      catalogue.inboxEvents,
      ({ waiting, failed, dead }) => [
        { labels: { state: "received" }, value: waiting.n },
        { labels: { state: "failed" }, value: failed.n },
        { labels: { state: "dead" }, value: dead.n },
      ],
    ],
    [catalogue.oldestUnapplied, ({ waitingSince }) => [{ value: ageSeconds(clock.now(), waitingSince) }]],
  ]);
  part("receivers", () => readReceivers(db), [
    [catalogue.receiversReady, ({ presence }) => (presence === null ? [] : [{ value: presence.ready }])],
    [catalogue.lastAnswerAge, ({ lastAnswerAt, now }) => ageOf(lastAnswerAt, now)],
    [catalogue.lastWebhookAge, ({ lastWebhookAt, now }) => ageOf(lastWebhookAt, now)],
  ]);
  part("backup", () => readBackups(db), [
    [catalogue.backupAge, (backups) => (backups === null ? [] : [{ value: unsavedMs(backups) / 1_000 }])],
  ]);
  part("proof", () => listProofs(db, { now: serviceClock.now(), at: clock.now() }), [
    [
      catalogue.provedUntil,
      (lists) =>
        lists.flatMap(({ resource, provedUntil }) =>
          provedUntil === null ? [] : [{ labels: { list: resource }, value: provedUntil.getTime() / 1_000 }],
        ),
    ],
  ]);
  part("findings", () => countOpenFindings(db), [
    [catalogue.findingsOpen, (open) => sums(open.map(({ class: kind, n }) => [{ class: kind }, n]))],
    [
      catalogue.findingsAtRisk,
      (open) => byCurrency(open.map(({ currency, amountAtRiskMinor }) => [currency, amountAtRiskMinor])),
    ],
  ]);
  part("dunning", () => sumUnpaidRenewals(db, { now: serviceClock.now() }), [
    [catalogue.dunningAtRisk, (unpaid) => byCurrency(unpaid.map(({ currency, totalMinor }) => [currency, totalMinor]))],
  ]);
  part("queue", () => queue.depth(), [
    [
      catalogue.queueJobs,
      ({ queue: name, ...counts }) =>
        catalogue.queueJobs.labels.state.map((state) => ({
          labels: { queue: name, state },
          value: counts[state],
        })),
    ],
    [
      catalogue.queueAge,
      ({ queue: name, oldestWaitingAt }) => [
        { labels: { queue: name }, value: ageSeconds(clock.now(), oldestWaitingAt) },
      ],
    ],
  ]);
  part("feed", () => listConsumers(db), [
    [
      catalogue.consumerAge,
      (consumers) =>
        consumers
          // Handlers have metrics of their own.
          .filter(({ name }) => (optionalRooms.handlers?.questions.handlerOf(name) ?? null) === null)
          .sort(byName)
          .slice(0, namesAtMost)
          .map(({ name, unreadSince }) => ({
            labels: { consumer: name },
            value: ageSeconds(clock.now(), unreadSince),
          })),
    ],
  ]);

  const alerts = optionalRooms.alerts?.metrics;
  if (alerts !== undefined) {
    part("alerts", () => alerts(db, runtime, { most: countedTo, channelsAtMost: namesAtMost }), [
      [
        catalogue.alertsOpen,
        ({ unresolved }) =>
          catalogue.alertsOpen.labels.severity.map((severity) => ({
            labels: { severity },
            value: unresolved.find((each) => each.severity === severity)?.n ?? 0,
          })),
      ],
      [
        catalogue.outboxAge,
        ({ outbox }) => outbox.map(({ channel, ageSeconds: value }) => ({ labels: { channel }, value })),
      ],
    ]);
  }

  const questions = optionalRooms.handlers?.questions ?? optionalRooms.forward?.questions;
  if (questions !== undefined) {
    const read = async () =>
      (await questions.handlersHealth(db, { most: countedTo })).sort(byName).slice(0, namesAtMost);
    part("handlers", read, [
      [catalogue.handlerDead, (all) => all.map(({ name, dead }) => ({ labels: { handler: name }, value: dead }))],
      [
        catalogue.handlerAge,
        (all) =>
          all.map(({ name, unreadSince }) => ({
            labels: { handler: name },
            value: ageSeconds(clock.now(), unreadSince),
          })),
      ],
      [
        catalogue.handlerPostponed,
        (all) => all.map(({ name, postponed: value }) => ({ labels: { handler: name }, value })),
      ],
      [
        catalogue.handlerPaused,
        (all) =>
          all.map(({ name, pausedBy }) => ({
            labels: { handler: name },
            value: pausedBy === null ? 0 : 1,
          })),
      ],
    ]);
  }

  const downHosts = optionalRooms.handlers?.questions.downHosts;
  if (downHosts !== undefined) {
    part("hosts", () => downHosts(db, { afterMinutes: 0 }), [
      [catalogue.handlerFilesDown, (hosts) => [{ value: new Set(hosts.flatMap(({ files }) => files)).size }]],
    ]);
  }

  metrics.read(catalogue.readSuccess, () =>
    Promise.all(
      [...readings].map(async ([name, reading]) => {
        // Of this scrape, not of the one before.
        await reading.current();
        return { labels: { part: name }, value: reading.isReadable() ? 1 : 0 };
      }),
    ),
  );
}

/** Nothing where it never happened: that is no age. */
const ageOf = (since: Date | null, now: Date): Sample[] => (since === null ? [] : [{ value: ageSeconds(now, since) }]);

/** 0 where there is nothing. A clock that is behind makes no age negative. */
const ageSeconds = (now: Date, since: Date | null): number =>
  since === null ? 0 : Math.max(0, (now.getTime() - since.getTime()) / 1_000);

/** Whatever the service calls a currency, the label stays one of those of ISO 4217. */
function knownCurrency(code: string | null): string {
  if (code === null) return "unknown";
  const lower = code.toLowerCase();
  return currencyDigits.has(lower) ? lower : "other";
}

/** Amounts in minor units, by the currency that their label names. Pure. */
const byCurrency = (amounts: readonly (readonly [string | null, bigint])[]): readonly Sample[] =>
  sums(amounts.map(([code, amount]) => [{ currency: knownCurrency(code) }, Number(amount)]));

/** Adds up what has the same labels. Pure. */
function sums(parts: readonly (readonly [Readonly<Record<string, string>>, number])[]): readonly Sample[] {
  const found = new Map<string, { labels: Readonly<Record<string, string>>; value: number }>();
  for (const [labels, value] of parts) {
    const key = JSON.stringify(labels);
    const known = found.get(key) ?? { labels, value: 0 };
    known.value += value;
    found.set(key, known);
  }
  return [...found.values()];
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
