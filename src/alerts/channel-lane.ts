import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import { runEvery } from "../platform/every.ts";
import type { Loop } from "../platform/every.ts";
import { startDeadline } from "../platform/http/deadline.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { channelPausePolicy, retryDelayMs } from "../queue/retry-policy.ts";
import type { Channel } from "./channels/channel.ts";
import { outcomeOf } from "./delivery-outcome.ts";
import type { Outcome } from "./delivery-outcome.ts";
import { claimDue, settle } from "./outbox.ts";
import type { ClaimedRow, Settlement } from "./outbox.ts";
import { fateOf } from "./sending-fate.ts";

export interface LaneDeps {
  db: Knex;
  log: Log;
  /** Wall clock. */
  clock: Clock;
  random: Random;
}

export interface LaneOptions {
  /** How often a lane looks for work. */
  pollMs: number;
  /** Messages at once. */
  concurrency: number;
  /** For one message, whatever the channel does. */
  sendTimeoutMs: number;
  /** How long a claimed row is hidden: more than a send can take. */
  leaseMs: number;
}

export const defaultLaneOptions: LaneOptions = {
  pollMs: 250,
  concurrency: 8,
  sendTimeoutMs: 15_000,
  leaseMs: 60_000,
};

/** After the database did not answer: what is due then is told soon enough, and the log is not filled. */
const databasePauseMs = 2_000;

/**
 * Sends what is due on one channel, until closed. Each channel has a lane of its own, so that one that hangs or is
 * away holds up no other. A channel that takes nothing is left alone for a while and then asked with one message.
 * No transaction is open while a message is sent.
 */
export function startLane(
  deps: LaneDeps,
  [name, channel]: readonly [string, Channel],
  options: LaneOptions,
): Loop {
  const { db, clock, random } = deps;
  const log = deps.log.child({ channel: name });
  let failedRounds = 0;
  let pausedUntilMs = 0;

  return runEvery({ log, clock, name: `alerts ${name}` }, options.pollMs, async () => {
    if (clock.now().getTime() < pausedUntilMs) return { more: false };
    const rows = await claim();
    const outcomes = await Promise.all(rows.map((row) => handle(row)));
    const pauseMs = pauseAfter(outcomes.filter((outcome) => outcome !== null));
    if (pauseMs > 0) pausedUntilMs = clock.now().getTime() + pauseMs;
    return { more: rows.length > 0 && pauseMs === 0 };
  });

  async function claim(): Promise<ClaimedRow[]> {
    const limit = failedRounds > 0 ? 1 : options.concurrency;
    try {
      return await claimDue(db, name, { limit, leaseMs: options.leaseMs });
    } catch (error) {
      pausedUntilMs = clock.now().getTime() + databasePauseMs;
      throw error;
    }
  }

  async function handle(row: ClaimedRow): Promise<Outcome | null> {
    const fate = fateOf(row);
    if (!fate.send) {
      await store(row, { state: "dropped", reason: fate.reason, maybeSent: false });
      return null;
    }
    const outcome = await sendOne(row);
    await store(row, outcome.settlement);
    return outcome;
  }

  /** Never throws: the round waits for all that is being sent. A row that is not settled comes back after its lease. */
  async function store(row: ClaimedRow, settlement: Settlement): Promise<void> {
    try {
      await settle(db, row.id, settlement);
    } catch (err) {
      log.warn({ err, ...factsOf(row) }, "what became of an alert could not be stored");
    }
  }

  async function sendOne(row: ClaimedRow): Promise<Outcome> {
    const deadline = startDeadline(options.sendTimeoutMs, []);
    try {
      await channel.send(row.message, { signal: deadline.signal });
      log.info(factsOf(row), "an alert was sent");
      return { settlement: { state: "sent" }, hasFailed: false, retryAfterMs: 0 };
    } catch (error) {
      const outcome = outcomeOf(row, error, random);
      const facts = { ...factsOf(row), reason: outcome.settlement.reason };
      if (outcome.settlement.state === "failed") log.error(facts, "an alert was given up");
      else log.warn(facts, "an alert was not taken");
      return outcome;
    } finally {
      deadline.dispose();
    }
  }

  /** Zero while the channel takes anything, unless it asks for peace. */
  function pauseAfter(outcomes: readonly Outcome[]): number {
    if (outcomes.length === 0) return 0;
    const isTaking = outcomes.some(({ hasFailed }) => !hasFailed);
    failedRounds = isTaking ? 0 : failedRounds + 1;
    const askedMs = Math.max(...outcomes.map(({ retryAfterMs }) => retryAfterMs));
    return isTaking
      ? askedMs
      : Math.max(askedMs, retryDelayMs(channelPausePolicy, failedRounds, random) ?? 0);
  }
}

const factsOf = ({ id, stage, action, attempts, message }: ClaimedRow) => ({
  outboxId: id,
  rule: message.rule,
  stage,
  action,
  attempts,
});
