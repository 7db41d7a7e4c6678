import type { Random } from "../../../platform/random.ts";
import { ApiError } from "../engine/api-error.ts";
import type { Space } from "../engine/space.ts";
import { createHeap } from "../engine/heap.ts";

/** The tools of generated traffic. */
export interface TrafficContext {
  readonly space: Space;
  readonly random: Random;
  readonly startMs: number;
  readonly endMs: number;
  /** The share of changes that tie with the previous one, in the same millisecond. */
  readonly tieRate: number;
  readonly counts: TrafficCounts;
  /** Runs `act` at a time, or at the end if the time is later than that. */
  at(ms: number, act: () => void): void;
  /** Runs `act` now; its `updated_at` may equal the previous one. */
  tied(act: () => void): void;
}

export interface TrafficCounts {
  customers: number;
  orders: number;
  subscriptions: number;
  refunds: number;
  declines: number;
  chargebacks: number;
  retries: number;
  voids: number;
  cancellations: number;
  customer_edits: number;
  customer_deletions: number;
  redemptions: number;
  /** Steps that the service refused, such as the refund of an order that was charged back before. */
  refused: number;
}

interface Step {
  ms: number;
  seq: number;
  act: () => void;
}

export interface Script extends TrafficContext {
  /** Runs all steps in order of time. `moveTo` sets the clock before each. */
  play(moveTo: (ms: number) => void): Promise<void>;
}

/** Steps run before deliveries and requests get their turn. */
const stepsPerTurn = 25;

export function createScript(
  deps: { space: Space; random: Random; setMayTie: (mayTie: boolean) => void },
  span: { startMs: number; endMs: number; tieRate: number },
): Script {
  const steps = createHeap<Step>((a, b) => a.ms < b.ms || (a.ms === b.ms && a.seq < b.seq));
  let seq = 0;
  const counts: TrafficCounts = {
    customers: 0,
    orders: 0,
    subscriptions: 0,
    refunds: 0,
    declines: 0,
    chargebacks: 0,
    retries: 0,
    voids: 0,
    cancellations: 0,
    customer_edits: 0,
    customer_deletions: 0,
    redemptions: 0,
    refused: 0,
  };

  function perform(step: Step): void {
    try {
      step.act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      counts.refused += 1;
    }
  }

  return {
    space: deps.space,
    random: deps.random,
    ...span,
    counts,
    at: (ms, act) => steps.push({ ms: Math.min(Math.round(ms), span.endMs), seq: seq++, act }),
    tied(act) {
      deps.setMayTie(true);
      try {
        act();
      } finally {
        deps.setMayTie(false);
      }
    },
    async play(moveTo) {
      for (let played = 1; ; played++) {
        const step = steps.pop();
        if (step === undefined) break;
        moveTo(step.ms);
        perform(step);
        if (played % stepsPerTurn === 0) await new Promise(setImmediate);
      }
      moveTo(span.endMs);
    },
  };
}

export const dayMs = 86_400_000;

export function happens(random: Random, probability: number): boolean {
  return random() < probability;
}

export function pick<const Choices extends readonly [unknown, ...unknown[]]>(
  random: Random,
  choices: Choices,
): Choices[number] {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}

export function between(random: Random, least: number, most: number): number {
  return least + random() * (most - least);
}

export function pickWeighted<T>(random: Random, choices: readonly (readonly [T, number])[]): T {
  const total = choices.reduce((sum, [, weight]) => sum + weight, 0);
  let left = random() * total;
  for (const [choice, weight] of choices) {
    left -= weight;
    if (left < 0) return choice;
  }
  return (choices.at(-1) as readonly [T, number])[0];
}
