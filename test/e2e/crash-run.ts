import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { type OwnServer, startOwnServer } from "../support/own-server.ts";
import { type Audit, audit } from "./audit.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { settledFromNow, storedAreSettled } from "./inbox-progress.ts";
import type { Program } from "./program.ts";
import { type Sender, type SenderCounts, startSender } from "./sender.ts";

/** `backend`: one process of the database's, after which the server recovers by itself. */
export type Victim = "receiver" | "worker" | "postgres" | "backend";

export interface CrashPlan {
  /** Decides the events, the order of the kills and their moments. */
  seed: string;
  kills: Readonly<Record<Victim, number>>;
  workers?: number;
  eventsPerSecond?: number;
  redisUrl?: string;
  /** Of the database. */
  settings?: Record<string, string>;
  /** Done to the database before anything runs. */
  prepare?: (db: Knex) => Promise<unknown>;
}

export interface CrashReport extends SenderCounts {
  seed: string;
  killed: Record<Victim, number>;
  /** From the last acknowledgement until every event was settled. */
  drainMs: number;
  seconds: number;
  audit: Audit;
}

/**
 * Real processes under load, killed with SIGKILL at seeded moments, one at a time, started again at once. Rejects
 * when a process ends without having been killed, or does not come back; otherwise says what it found.
 */
export async function runCrashes(plan: CrashPlan): Promise<CrashReport> {
  const startedMs = performance.now();
  const server = await startOwnServer(plan.settings);
  const db = createDatabase({ url: server.url, poolMax: 2, applicationName: "tallyhook test" });
  const stage: Stage = { server, receiver: null, workers: [], sender: null };
  try {
    await plan.prepare?.(db);
    const history = createHistory(seededRandom(`${plan.seed} history`));
    const deployment = await layOutDeployment({
      databaseUrl: server.url,
      ...(plan.redisUrl === undefined ? {} : { redisUrl: plan.redisUrl }),
    });
    [stage.receiver, ...stage.workers] = await Promise.all([
      deployment.startReceiver(),
      ...Array.from({ length: plan.workers ?? 1 }, () => deployment.startWorker()),
    ]);
    const sender = startSender(
      { history, random: seededRandom(`${plan.seed} sender`) },
      {
        url: deployment.webhooksUrl,
        secret: webhookSecret,
        eventsPerSecond: plan.eventsPerSecond ?? 300,
      },
    );
    stage.sender = sender;
    const random = seededRandom(`${plan.seed} kills`);
    const killed: CrashReport["killed"] = { receiver: 0, worker: 0, postgres: 0, backend: 0 };
    for (const victim of shuffledVictims(plan.kills, random)) {
      await sender.whenAcknowledged(30 + Math.floor(random() * 120));
      // Acknowledgements come in groups: this spreads the kills over the time between two of them.
      await sleep(random() * 40);
      await killAndRestart(stage, deployment, victim, random);
      if (victim !== "receiver") await settledFromNow(db, { withinMs: 40_000 });
      killed[victim]++;
      assertRunning(stage);
    }
    await sender.whenAcknowledged(100);
    await sender.finish();
    const drainMs = await storedAreSettled(db);
    assertRunning(stage);
    return {
      seed: plan.seed,
      killed,
      ...sender.counts,
      slowestAnswerMs: Math.round(sender.counts.slowestAnswerMs),
      drainMs,
      seconds: Math.round((performance.now() - startedMs) / 100) / 10,
      audit: await audit(db, sender.acknowledged, history.model),
    };
  } catch (error) {
    throw new Error(`the run with seed ${plan.seed} broke off\n${lastWords(stage)}`, {
      cause: error,
    });
  } finally {
    await stage.sender?.abort();
    await Promise.all([stage.receiver, ...stage.workers].map(async (program) => program?.kill()));
    await db.destroy();
    await server.destroy();
  }
}

interface Stage {
  server: OwnServer;
  receiver: Program | null;
  workers: Program[];
  sender: Sender | null;
}

async function killAndRestart(stage: Stage, deployment: Deployment, victim: Victim, random: Random): Promise<void> {
  switch (victim) {
    case "receiver":
      await stage.receiver?.kill();
      stage.receiver = await deployment.startReceiver();
      return;
    case "worker": {
      const index = Math.floor(random() * stage.workers.length);
      await stage.workers[index]?.kill();
      stage.workers[index] = await deployment.startWorker();
      return;
    }
    case "postgres":
      await stage.server.kill();
      await stage.server.restart();
      return;
    case "backend":
      await stage.server.killBackend(random);
  }
}

function shuffledVictims(kills: CrashPlan["kills"], random: Random): Victim[] {
  const victims = Object.entries(kills).flatMap(([victim, count]) =>
    Array.from({ length: count }, () => victim as Victim),
  );
  for (let last = victims.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [victims[last], victims[other]];
    if (a !== undefined && b !== undefined) [victims[last], victims[other]] = [b, a];
  }
  return victims;
}

function assertRunning({ receiver, workers }: Stage): void {
  for (const program of [receiver, ...workers]) {
    if (program?.isRunning() === false) throw new Error(`${program.name} ended by itself`);
  }
}

const lastWords = ({ receiver, workers }: Stage): string =>
  [receiver, ...workers]
    .map((program) => `${program?.name ?? "?"}: ${program?.output().slice(-3_000) ?? ""}`)
    .join("\n");
