import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { countByState, countOpenWork } from "../../../../core/inbox/queries.ts";
import { ConfigurationError, TallyhookError } from "../../../../platform/errors.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { startSandbox } from "../../start-sandbox.ts";
import { sandboxApiKey } from "../../../../app/create-runtime.ts";
import type { Runtime } from "../../../../app/runtime.ts";
import { migrateAll } from "../../../../app/processes/migrate-all.ts";
import { createProgress } from "../../../../app/cli/progress.ts";
import { runReceiver } from "../../../../app/processes/run-receiver.ts";
import { runWorker } from "../../../../app/processes/run-worker.ts";
import { type ResourceComparison, compareWithSnapshot } from "./compare.ts";
import { type SandboxCalls, createSandboxCalls } from "./sandbox-calls.ts";

export interface DemoResult {
  summary: DemoSummary;
  before: ResourceComparison[];
  after: ResourceComparison[];
  /** True if both sides are equal and the run had faults to recover from. */
  proved: boolean;
  why: string;
}

export interface DemoOptions {
  seed: string;
  startedAt: Date;
  say(text: string): void;
  progressTo: NodeJS.WriteStream | null;
  /** Aborts the run. It then rejects with the signal's reason, once all its work has stopped. */
  signal: AbortSignal;
}

const traffic = { orders: 2_000, subscriptions: 200 };

/**
 * Shares of deliveries that are lost for good, doubled, overtaken or corrupted. A good copy follows a corrupted one.
 */
const faults = { drop: 0.05, duplicate: 0.1, reorder: 0.2, corrupt: 0.02 };
const quietTimeoutMs = 45_000;

/**
 * Sends the sandbox's traffic through a faulty network, waits until all events are applied, heals the losses and
 * compares every object with the sandbox's own state. The runtime's database must be empty.
 */
export async function proveRecovery(runtime: Runtime, options: DemoOptions): Promise<DemoResult> {
  const { seed, say, signal } = options;
  signal.throwIfAborted();
  const { healEverything } = runtime.ask;
  if (healEverything === undefined) throw new ConfigurationError("This program has no reconciliation, which heals.");
  await migrateAll(runtime);
  const sandbox = await startSandbox({ port: 0, host: "127.0.0.1", seed, log: runtime.log });
  runtime.onClose(() => sandbox.close());
  const service = { baseUrl: sandbox.url, apiKey: sandboxApiKey };
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey, signal);
  const receiver = await runReceiver(runtime, {
    // The endpoint, and so its secret, can be created only when the receiver's address is known.
    signingSecrets: async (url) => [(await calls.registerEndpoint(`${url}/webhooks`)).signingSecret],
  });
  await runWorker(runtime, {
    service,
    missingGraceMs: 0,
    without: ["reconcile", "reports", "alerts", "handlers", "forward"],
  });
  const db = await runtime.db();

  say(`Traffic: ${traffic.orders} orders and ${traffic.subscriptions} subscriptions, over a faulty network …`);
  await calls.control("PUT", "/faults", { seed, delivery: faults });
  await calls.control("POST", "/traffic", { ...traffic, seed });
  await calls.control("GET", "/idle");
  await stopServiceClock(calls);
  await untilQuiet(db, signal);
  const before = await compareWithSnapshot(db, await calls.snapshot());

  say("Comparing the mirror with the service's lists and healing it …");
  const progress =
    options.progressTo === null ? null : createProgress(options.progressTo, "rows read", objectsAtService(before));
  const reconciled = await healEverything(service, {
    signal,
    onProgress: ({ rows }) => progress?.update(rows),
  }).finally(() => progress?.stop());
  await untilQuiet(db, signal);
  const after = await compareWithSnapshot(db, await calls.snapshot());

  const states = await countByState(db);
  const { accepted, duplicate } = receiver.counters;
  const rejected = Object.values(receiver.counters.rejected).reduce((sum, n) => sum + n, 0);
  const seconds = (runtime.wallClock.now().getTime() - options.startedAt.getTime()) / 1_000;
  const summary: DemoSummary = {
    delivered: accepted + duplicate + rejected,
    accepted,
    duplicate,
    rejected,
    applied: states.applied,
    stale: states.stale,
    missing_before: wrongObjects(before),
    missing_after: wrongObjects(after),
    healed: reconciled.healed,
    left: reconciled.left,
    complete: reconciled.complete,
    seconds: Math.round(seconds * 10) / 10,
    equal: wrongObjects(after) === 0,
  };
  const why = whyNotProved(summary, states.dead);
  return { summary, before, after, proved: why === "", why };
}

/** Long enough after the last change for a read to confirm a tie. */
const stopAfterMs = 5_000;

/** A renewal that falls due between healing and comparing would look like a difference. */
async function stopServiceClock(calls: SandboxCalls): Promise<void> {
  const { clock } = await calls.control<{ clock: { now: string } }>("GET", "");
  const now = new Date(Date.parse(clock.now) + stopAfterMs).toISOString();
  await calls.control("POST", "/clock", { now });
}

const wrongObjects = (comparisons: readonly ResourceComparison[]): number =>
  comparisons.reduce((sum, { missing, different }) => sum + missing + different, 0);

const objectsAtService = (comparisons: readonly ResourceComparison[]): number =>
  comparisons.filter(({ resource }) => resource !== "chargebacks").reduce((sum, { atService }) => sum + atService, 0);

/** Waits until every stored event is applied and every refetch is done. */
async function untilQuiet(db: Knex, signal: AbortSignal): Promise<void> {
  const deadline = AbortSignal.timeout(quietTimeoutMs);
  for (;;) {
    signal.throwIfAborted();
    const open = await countOpenWork(db);
    if (open.events === 0 && open.fetches === 0) return;
    if (deadline.aborted) {
      throw new TallyhookError(
        `After ${quietTimeoutMs / 1_000} s there is still work left: ${counted(open.events, "event")}, ` +
          `${counted(open.fetches, "refetch", "refetches")}.`,
      );
    }
    await sleep(100);
  }
}

export interface DemoSummary {
  delivered: number;
  accepted: number;
  duplicate: number;
  rejected: number;
  applied: number;
  stale: number;
  missing_before: number;
  missing_after: number;
  /** Findings that reconciliation healed. `left`: those that it did not. */
  healed: number;
  left: number;
  complete: boolean;
  seconds: number;
  equal: boolean;
}

/**
 * The reason why a run proves nothing, in a few words; empty if it proves the point. A run without losses, repeats,
 * corrupted and overtaken deliveries proves nothing.
 */
export function whyNotProved(summary: DemoSummary, dead: number): string {
  if (!summary.equal) return `${counted(summary.missing_after, "object differs", "objects differ")}`;
  if (!summary.complete) return "reconciliation did not read everything";
  if (summary.left > 0) return `reconciliation left ${counted(summary.left, "difference")}`;
  if (dead > 0) return `${counted(dead, "event is", "events are")} dead`;
  const needed = ["missing_before", "healed", "duplicate", "rejected", "stale"] as const;
  const absent = needed.filter((name) => summary[name] === 0);
  return absent.length === 0
    ? ""
    : `the run had nothing to recover from: ${absent.map((name) => `${name} 0`).join(", ")}`;
}
