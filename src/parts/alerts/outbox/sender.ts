import type { Knex } from "knex";
import type { Clock } from "../../../platform/clock.ts";
import { startDeadline } from "../../../platform/http/exchange.ts";
import type { Log } from "../../../platform/log.ts";
import type { Random } from "../../../platform/random.ts";
import { type Loop, runEvery } from "../../../platform/run-every.ts";
import { type RetryPolicy, retryDelayMs } from "../../../platform/retry-delay.ts";
import { isTracing } from "../../../platform/tracing/tracing.ts";
import { type Channel, DeliveryFailed } from "../channels/channel.ts";
import { withinSendSpan } from "./message-spans.ts";
import { type ClaimedRow, type SendOutcome, claimDue, failOrphans, recordOutcome } from "./outbox.ts";

export interface RunningSender {
  /** Claims no further rows, finishes the sends in progress, and closes the channels. */
  close(): Promise<void>;
}

const orphansEveryMs = 60_000;

/**
 * Sends the rows of the outbox, with one loop for each channel. Any number of processes may run it together. Delivery
 * is at least once: a row whose process was killed before it recorded the send is sent again, with the same key.
 */
export function startSender(
  deps: SenderDeps,
  channels: ReadonlyMap<string, Channel>,
  options: SenderOptions = defaultSenderOptions,
): RunningSender {
  const { log, db } = deps;
  const lanes = [...channels].map((channel) => startChannelSender(deps, channel, options));
  const orphans = runEvery({ log, name: "alert orphans" }, orphansEveryMs, async () => {
    const failed = await failOrphans(db, [...channels.keys()]);
    if (failed > 0) log.error({ messages: failed }, "alerts for channels that do not exist");
    return { more: false };
  });
  return {
    async close() {
      await Promise.all([...lanes, orphans].map((loop) => loop.close()));
      await Promise.all([...channels.values()].map((channel) => channel.close()));
    },
  };
}

export interface SenderDeps {
  db: Knex;
  log: Log;
  /** Wall clock. */
  clock: Clock;
  random: Random;
}

export interface SenderOptions {
  /** How often a loop polls for work. */
  pollMs: number;
  /** Messages in parallel. */
  concurrency: number;
  /** The time limit for one message, on any channel. */
  sendTimeoutMs: number;
  /** How long a claimed row stays hidden: longer than a send can take. */
  leaseMs: number;
}

export const defaultSenderOptions: SenderOptions = {
  pollMs: 250,
  concurrency: 8,
  sendTimeoutMs: 15_000,
  leaseMs: 60_000,
};

/** The pause after a database failure: short enough for due messages, long enough not to fill the log. */
const databasePauseMs = 2_000;

/** The result of sending a row; null where it was no longer worth sending. */
type Result = { row: ClaimedRow; failed: FailedAttempt | null } | null;

/**
 * Sends due messages on one channel, until closed. Each channel has its own loop, so that one that hangs or is down
 * delays no other. A channel that accepts nothing is paused, then probed with its oldest message. The pause belongs to
 * the channel, not to its messages: when it is back they all go, the oldest first. No transaction is open while a
 * message is sent.
 */
function startChannelSender(
  deps: SenderDeps,
  [name, channel]: readonly [string, Channel],
  options: SenderOptions,
): Loop {
  const { db, clock, random } = deps;
  const log = deps.log.child({ channel: name });
  let failedRounds = 0;
  let pause = { sinceMs: 0, forMs: 0 };

  return runEvery({ log, name: `alerts ${name}` }, options.pollMs, async () => {
    if (isPaused()) return { more: false };
    const isProbe = failedRounds > 0;
    const results = isProbe ? await probe() : await sendMany(options.concurrency);
    const sent = results.filter((result) => result !== null);
    // A wrong message proves no fault of the channel.
    const isTaking = sent.some(({ failed }) => failed === null || !failed.isRetryable);
    for (const { row, failed } of sent) {
      // Messages that the channel refused just before it came back go first in the next round.
      if (failed !== null) await putBack(row, failed, isTaking && !isProbe);
    }
    const pauseMs = sent.length === 0 ? 0 : pauseAfter(sent, isTaking);
    if (pauseMs > 0) startPause(pauseMs);
    return { more: results.length > 0 && pauseMs === 0 };
  });

  function startPause(forMs: number): void {
    pause = { sinceMs: clock.now().getTime(), forMs };
  }

  /** Ends a pause when the clock was set back. Otherwise the pause would last as long as the clock was wrong. */
  function isPaused(): boolean {
    const passedMs = clock.now().getTime() - pause.sinceMs;
    return passedMs >= 0 && passedMs < pause.forMs;
  }

  async function claim(which: { limit: number; leastTried?: boolean }): Promise<ClaimedRow[]> {
    try {
      return await claimDue(db, name, { ...which, leaseMs: options.leaseMs });
    } catch (error) {
      startPause(databasePauseMs);
      throw error;
    }
  }

  async function sendMany(limit: number): Promise<Result[]> {
    const rows = await claim({ limit });
    return Promise.all(rows.map((row) => handle(row)));
  }

  /**
   * Probes a channel that accepted nothing: with the oldest message, and if that is refused, with the one with the
   * fewest attempts. A single message that is always refused must not look like an outage.
   */
  async function probe(): Promise<Result[]> {
    const results = await sendMany(1);
    if (results.every((result) => result === null || result.failed === null)) return results;
    const [other] = await claim({ limit: 1, leastTried: true });
    return other === undefined ? results : [...results, await handle(other)];
  }

  async function handle(row: ClaimedRow): Promise<Result> {
    const decision = sendDecisionOf(row);
    if (!decision.send) {
      await store(row, { state: "dropped", reason: decision.reason, maybeSent: false });
      return null;
    }
    const send = (): Promise<FailedAttempt | null> => sendOne(row);
    const failed = await (isTracing() ? withinSendSpan({ ...row, channel: name }, send) : send());
    if (failed === null) await store(row, { state: "sent" });
    return { row, failed };
  }

  /**
   * Never throws, because the round waits for all its sends. A row that is not completed comes back after its lease.
   */
  async function store(row: ClaimedRow, settlement: SendOutcome): Promise<void> {
    try {
      await recordOutcome(db, row.id, settlement);
    } catch (err) {
      log.warn({ err, ...factsOf(row) }, "the outcome of sending an alert could not be stored");
    }
  }

  async function sendOne(row: ClaimedRow): Promise<FailedAttempt | null> {
    const deadline = startDeadline(options.sendTimeoutMs, []);
    try {
      await channel.send(row.message, { signal: deadline.signal });
      log.info(factsOf(row), "an alert was sent");
      return null;
    } catch (error) {
      return failedAttempt(error);
    } finally {
      deadline.dispose();
    }
  }

  async function putBack(row: ClaimedRow, failed: FailedAttempt, isChannelTaking: boolean): Promise<void> {
    const settlement = outcomeOf(row, failed, { isChannelTaking, random });
    const facts = { ...factsOf(row), reason: settlement.reason };
    if (settlement.state === "failed") log.error(facts, "an alert was given up");
    else log.warn(facts, "an alert was not accepted");
    await store(row, settlement);
  }

  /** Zero while the channel accepts anything, unless it asks to wait. */
  function pauseAfter(sent: readonly NonNullable<Result>[], isTaking: boolean): number {
    failedRounds = isTaking ? 0 : failedRounds + 1;
    const askedMs = Math.max(0, ...sent.map(({ failed }) => failed?.retryAfterMs ?? 0));
    return isTaking ? askedMs : Math.max(askedMs, retryDelayMs(channelPausePolicy, failedRounds, random) ?? 0);
  }
}

const factsOf = ({ id, stage, action, attempts, message }: ClaimedRow) => ({
  outboxId: id,
  rule: message.rule,
  stage,
  action,
  attempts,
});

/** Whether a claimed row is still worth sending, and if not, why. */
export type SendDecision = { send: true } | { send: false; reason: string };

/**
 * Drops the message of an alert that is already over, and the end of an alert that the channel never got. A message
 * that may have arrived is sent again with the same key, since only that proves its arrival. A list is always sent: it
 * reports other alerts than its own.
 */
export function sendDecisionOf(
  row: Pick<ClaimedRow, "action" | "alertState" | "mayBeRepeat" | "isList" | "isEarlierTold" | "isLaterTold">,
): SendDecision {
  if (row.mayBeRepeat || row.isList) return { send: true };
  if (row.action !== "trigger" && !row.isEarlierTold) {
    return { send: false, reason: "this channel did not get the alert itself" };
  }
  if (row.action !== "resolve" && row.alertState === "resolved") {
    return { send: false, reason: "resolved before it was sent" };
  }
  if (row.isLaterTold) return { send: false, reason: "a later transition was sent first" };
  return { send: true };
}

/**
 * For a message that its channel refused while accepting others. Its age decides when it is abandoned
 * (`giveUpAfterMs`).
 */
const alertRetryPolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 60_000,
};

/**
 * How long a channel that accepts nothing is paused. Even with two hanging probes of 15 s each, it is probed again
 * within a minute.
 */
const channelPausePolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 25_000,
};

/** A message that was not accepted for so long is given up: an outage may last a weekend. */
export const giveUpAfterMs = 3 * 86_400_000;

/**
 * Why an attempt failed. `isRetryable` is false where the message itself is wrong, which proves no fault of the
 * channel.
 */
export interface FailedAttempt {
  reason: string;
  /** The message may have arrived. */
  maybeSent: boolean;
  isRetryable: boolean;
  /** The wait that the other side asked for, bounded by `parseRetryAfter`; zero without one. */
  retryAfterMs: number;
}

/** A channel's error in the sender's terms. */
function failedAttempt(error: unknown): FailedAttempt {
  const failure = asDeliveryFailed(error);
  return {
    reason: failure.message,
    maybeSent: failure.mayHaveArrived,
    isRetryable: failure.isRetryable,
    retryAfterMs: failure.retryAfterMs ?? 0,
  };
}

/**
 * The outcome of a message that was not accepted. While its channel accepts others, it waits longer each time. On a
 * channel that accepts no message all stay due, so that the oldest goes first when it is back.
 */
function outcomeOf(
  { attempts, waitedMs }: Pick<ClaimedRow, "attempts" | "waitedMs">,
  { reason, maybeSent, isRetryable, retryAfterMs }: FailedAttempt,
  { isChannelTaking, random }: { isChannelTaking: boolean; random: Random },
): SendOutcome & { reason: string } {
  if (!isRetryable || waitedMs >= giveUpAfterMs) return { state: "failed", reason, maybeSent };
  const ownMs = isChannelTaking ? (retryDelayMs(alertRetryPolicy, attempts, random) ?? 0) : 0;
  return { state: "pending", reason, maybeSent, retryInMs: Math.max(ownMs, retryAfterMs) };
}

/** An unexpected error of a channel. Its text could contain anything, so it is not shown. */
function asDeliveryFailed(error: unknown): DeliveryFailed {
  if (error instanceof DeliveryFailed) return error;
  const name = error instanceof Error ? error.name : typeof error;
  return new DeliveryFailed(`an unexpected ${name}`, { isRetryable: true, mayHaveArrived: true });
}
